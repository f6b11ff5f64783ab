async function main() {
  const { job, millrace } = await import('millrace')
  const greet = job('greet', async ({ name }) => `hello ${name}`)
  const mill = await millrace({ store: 'jobs.db', jobs: [greet] })
  const handle = await mill.enqueue(greet, { name: 'ada' })
  await mill.start()
  console.log(await handle.result({ timeout: '20s' }))
  await mill.close()
}

void main()

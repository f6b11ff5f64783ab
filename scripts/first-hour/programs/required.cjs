const { job, millrace } = require('millrace')

const greet = job('greet', async ({ name }) => `hello ${name}`)

async function main() {
  const mill = await millrace({ store: 'jobs.db', jobs: [greet] })
  const handle = await mill.enqueue(greet, { name: 'ada' })
  await mill.start()
  console.log(await handle.result({ timeout: '20s' }))
  await mill.close()
}

void main()

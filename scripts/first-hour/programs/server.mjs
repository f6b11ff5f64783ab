import express from 'express'
import { job, millrace } from 'millrace'

const greet = job('greet', async ({ name }) => `hello ${name}`)
const mill = await millrace({ store: 'jobs.db', jobs: [greet] })
await mill.start()

const app = express()
app.use(express.json())
app.post('/greet', async (request, response) => {
  const handle = await mill.enqueue(greet, request.body)
  response.status(202).json({ id: handle.id })
})

const server = app.listen(0, '127.0.0.1', async () => {
  const answer = await fetch(`http://127.0.0.1:${server.address().port}/greet`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'ada' }),
  })
  const { id } = await answer.json()
  console.log(await mill.handle(id).result({ timeout: '20s' }))
  server.close()
  await mill.close()
})

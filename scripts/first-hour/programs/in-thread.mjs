import { Worker } from 'node:worker_threads'

const worker = new Worker(new URL('./app.mjs', import.meta.url))
worker.on('exit', (code) => console.log(`the thread ended with ${code}`))

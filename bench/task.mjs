/**
 * One measurement, in a separate process, so that CPU and memory are measured alone: `node task.mjs '{"task": …}'`. It prints
 * JSON lines: `{ ready: true }` where the parent waits for that, and `{ result }` at the end.
 */
const spec = JSON.parse(process.argv[2])
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`)
const [{ run }, contestant] = await Promise.all([
  import(`./tasks/${spec.task}.mjs`),
  spec.contestant === undefined ? undefined : import(`./contestants/${spec.contestant}.mjs`),
])
say({ result: (await run(spec, contestant, say)) ?? null })

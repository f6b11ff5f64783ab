import { writeSync } from 'node:fs'
import { OutsideEye } from '../outside-eye.mjs'

/** Reads a file once, in a separate process: with `entry`, its tables are created first and settlements are counted. */
const { file, entry } = JSON.parse(process.argv[2])
if (entry !== undefined) {
  const { millrace } = await import(entry)
  const mill = await millrace({ store: file, logger: false })
  await mill.close()
}
const eye = new OutsideEye(file)
if (entry !== undefined) eye.watchSettlements()
const seen = eye.hasTables()
  ? { integrity: eye.integrity(), places: eye.places(), twice: eye.settledTwice(), unfinished: eye.unfinished() }
  : { integrity: eye.integrity(), places: [], twice: [], unfinished: 0 }
eye.close()
const text = Buffer.from(JSON.stringify(seen))
for (let at = 0; at < text.length;) at += writeSync(1, text, at)

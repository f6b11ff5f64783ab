import { chooseDriver } from '../contestants/driver.mjs'

/** Checkpoints the WAL, so that every measurement begins with none and the file can be copied alone. */
export async function run({ file, dist }) {
  const { Database, name } = await chooseDriver(dist)
  const database = new Database(file)
  const { busy } = database.prepare('pragma wal_checkpoint(truncate)').get()
  if (busy !== 0) throw new Error(`${file} is still in use and cannot be checkpointed`)
  const { version } = database.prepare('select sqlite_version() as version').get()
  database.close()
  return { driver: name, sqlite: version }
}

/** Makes the tables before anybody is hurt, so that the outside eye has something to look at from the beginning. */
export async function makeStore(entry, file) {
  const { millrace } = await import(entry)
  const mill = await millrace({ store: file, logger: false })
  await mill.close()
}

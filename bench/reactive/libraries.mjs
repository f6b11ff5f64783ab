/** The libraries, by the name in the tables. */
export const LIBRARIES = { millrace: 'millrace', preact: '@preact/signals-core', alien: 'alien-signals' }

/** The task of a measurement in one library. */
export function taskOf(place, library, task, spec) {
  return { task, contestant: `reactive/${library}`, dist: place.dist, ...spec }
}

/** One case for each library and each of `names`. */
export function casesOf(names) {
  return names.flatMap((name) =>
    Object.keys(LIBRARIES).map((library) => ({ key: keyOf(name, library), name, library })),
  )
}

export function keyOf(name, library) {
  return `${name}, ${library}`
}

/**
 * V8 compiles and collects on the thread that runs the code: on a busy machine its helper threads start late, so that how
 * much was compiled when a sample began would depend on the load.
 */
export const ONE_THREAD = ['--single-threaded']

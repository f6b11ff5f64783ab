/** The handler of `crasher`, in a process of its own: that ends with each attempt, and at last the job is parked. */
export function run() {
  process.exit(139)
}

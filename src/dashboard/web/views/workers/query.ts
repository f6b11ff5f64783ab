export function topics(): readonly string[] {
  return ['workers']
}

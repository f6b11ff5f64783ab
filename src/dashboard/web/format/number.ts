/** A space that keeps a number and its unit together. */
export const THIN = '\u202f'
/** What stands for a number that is not known; never 0. */
export const UNKNOWN = '–'

/** `9,412`, then three digits: `12.4k`, `1.28M`. The exact number belongs in the title. */
export function count(value: number | undefined): string {
  if (value === undefined || !Number.isFinite(value)) return UNKNOWN
  if (value < 10_000) return whole(value)
  const [scaled, unit] =
    value < 999_500 ? [value / 1_000, 'k'] : value < 999_500_000 ? [value / 1e6, 'M'] : [value / 1e9, 'G']
  return `${threeDigits(scaled)}${unit}`
}

/** Whole, with commas: `1,284,903`. */
export function whole(value: number | undefined): string {
  if (value === undefined || !Number.isFinite(value)) return UNKNOWN
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ',')
}

/** A rate: below ten with one decimal, so that slow work does not read as none. */
export function rate(perMinute: number | undefined): string {
  if (perMinute === undefined || !Number.isFinite(perMinute)) return UNKNOWN
  if (perMinute === 0 || perMinute >= 9.95) return count(Math.round(perMinute))
  return perMinute < 0.1 ? '< 0.1' : perMinute.toFixed(1)
}

/** `18 %`; `< 1 %` and `> 99 %` instead of a false 0 or 100. */
export function percent(share: number | undefined): string {
  if (share === undefined || !Number.isFinite(share)) return UNKNOWN
  if (share > 0 && share < 0.01) return `< 1${THIN}%`
  if (share < 1 && share > 0.99) return `> 99${THIN}%`
  return `${Math.round(share * 100)}${THIN}%`
}

/** `812 KB`, `1.2 MB`: powers of 1,000. */
export function bytes(value: number | undefined): string {
  if (value === undefined || !Number.isFinite(value)) return UNKNOWN
  if (value < 1_000) return `${value}${THIN}B`
  const [scaled, unit] =
    value < 999_500 ? [value / 1e3, 'KB'] : value < 999_500_000 ? [value / 1e6, 'MB'] : [value / 1e9, 'GB']
  return `${scaled < 9.95 ? scaled.toFixed(1) : Math.round(scaled)}${THIN}${unit}`
}

/** `1 job`, `2 jobs`, `12.4k jobs`. */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`
}

/** A count that a bound has cut: `> 10,000`. */
export function bounded(value: number, isExact: boolean): string {
  return isExact ? count(value) : `> ${whole(value)}`
}

function threeDigits(value: number): string {
  if (value < 9.995) return value.toFixed(2)
  return value < 99.95 ? value.toFixed(1) : String(Math.round(value))
}

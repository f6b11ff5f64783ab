import { InvalidOptionsError } from '../../errors.js'
import type { Problem } from '../../errors.js'
import type { DashboardColours, DashboardOptions } from '../../mill/dashboard-options.js'

/** The grounds that text is read on, if the theme does not change them. */
const GROUNDS = { light: ['#F6F7F5', '#FFFFFF', '#EEF0ED'], dark: ['#0E1311', '#151B18', '#0A0E0C'] } as const
const GROUND_NAMES = ['page', 'surface', 'sunken'] as const
/** Tokens that are ink on a ground, with the least contrast by WCAG 2.2. */
const INKS: Readonly<Record<string, number>> = { text: 4.5, 'text-2': 4.5, 'text-3': 4.5, edge: 3, focus: 3 }

/** The style sheet of the option `theme`; undefined without one. Throws when a text would be hard to read. */
export function themeSheet(theme: DashboardOptions['theme']): string | undefined {
  if (theme === undefined) return undefined
  const { light = {}, dark = {} } = theme
  const problems = [...contrastProblems('light', light), ...contrastProblems('dark', dark)]
  if (problems.length > 0) throw new InvalidOptionsError('dashboard()', problems)
  const [day, night] = [rules(light), rules(dark)]
  return [
    `@media (prefers-color-scheme: light){:root:not(.dark){${day}}}`,
    `@media (prefers-color-scheme: dark){:root:not(.light){${night}}}`,
    `:root.light{${day}}`,
    `:root.dark{${night}}`,
    '',
  ].join('\n')
}

function rules(colours: DashboardColours): string {
  return Object.entries(colours)
    .map(([name, colour]) => `--${name}:${colour};`)
    .join('')
}

function contrastProblems(mode: 'light' | 'dark', colours: DashboardColours): Problem[] {
  const grounds = GROUND_NAMES.map((name, i) => colours[name] ?? (GROUNDS[mode][i] as string))
  return Object.entries(INKS).flatMap(([name, least]) => {
    const ink = colours[name]
    if (ink === undefined) return []
    const worst = Math.min(...grounds.map((ground) => contrast(ink, ground)))
    if (worst >= least) return []
    return [
      {
        path: `theme.${mode}.${name}`,
        message: `has a contrast of ${worst.toFixed(1)} to its ground, and needs ${least}`,
      },
    ]
  })
}

function contrast(one: string, other: string): number {
  const [light, dark] = [luminance(one), luminance(other)].toSorted((a, b) => b - a) as [number, number]
  return (light + 0.05) / (dark + 0.05)
}

function luminance(colour: string): number {
  const [r, g, b] = [1, 3, 5].map((at) => linear(Number.parseInt(colour.slice(at, at + 2), 16) / 255)) as [
    number,
    number,
    number,
  ]
  return 0.2126 * r + 0.7152 * g + 0.0722 * b
}

function linear(part: number): number {
  return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
}

import { useApp } from '../../app-context.js'
import { Menu } from '../../parts/menu.js'
import { jobsHref } from '../../route.js'

/** Searches that this browser has saved; the route is the link to share. */
export function SavedSearches({ query }: { query: string }) {
  const { settings } = useApp()
  const saved = settings.saved.value
  const links = Object.entries(saved).map(([label, q]) => ({ label, href: jobsHref(q) }))
  const rest = Object.fromEntries(Object.entries(saved).filter(([, q]) => q !== query))
  const isSaved = Object.values(saved).includes(query)
  const change = isSaved
    ? { label: 'Forget this search', onClick: () => void (settings.saved.value = rest) }
    : {
        label: 'Save this search',
        unavailable: query === '' ? 'The search is empty.' : undefined,
        onClick: () => void (settings.saved.value = { ...saved, [query]: query }),
      }
  return <Menu label="Saved searches" items={[change, ...links]} />
}

import { useApp } from '../app-context.js'
import { NOTHING_HELD } from '../connection/held.js'
import { visible } from '../format/text.js'
import { Page } from '../parts/page.js'

/** A route that no page has. */
export function UnknownPage() {
  const { id = '' } = useApp().router.route.value
  const gone = `There is no page "${visible(id)}" in the dashboard.`
  return (
    <Page title="No such page" held={{ ...NOTHING_HELD, gone }}>
      {null}
    </Page>
  )
}

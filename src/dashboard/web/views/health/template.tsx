import type { FindingRow, HealthFields, Snapshot } from '../../../protocol.js'
import { useApp } from '../../app-context.js'
import { CopyButton } from '../../parts/copy.js'
import { Page, Said, VerdictMark } from '../../parts/page.js'
import { Glyph } from '../../parts/state.js'
import { When } from '../../parts/time.js'
import { rowsOf, useTopic } from '../../use-topic.js'
import { findingLine, reportText } from './computed.js'

type View = Snapshot<HealthFields, FindingRow>

/** What the engine reports of itself: each fault with its effect and the fix. */
export function HealthPage() {
  const held = useTopic<'health'>('health')
  const { snapshot } = held
  return (
    <Page
      title="Health"
      held={held}
      lead={snapshot && <Lead view={snapshot} />}
      tools={snapshot && <Tools view={snapshot} />}
    >
      {snapshot && <Body view={snapshot} />}
    </Page>
  )
}

function Lead({ view }: { view: View }) {
  const { verdict } = view.fields
  return (
    <>
      <VerdictMark kind={verdict.kind} />
      <Said sentence={verdict.text} />
    </>
  )
}

function Tools({ view }: { view: View }) {
  const { clock, zone, session } = useApp()
  const findings = rowsOf(view).map((row) => findingLine(row, clock.now.value, zone.value))
  return (
    <>
      <CopyButton label="Copy as text" text={() => reportText(view.fields, findings)} />
      {session.role === 'admin' ? (
        <a class="button" href="#/audit">
          Audit trail
        </a>
      ) : null}
    </>
  )
}

function Body({ view }: { view: View }) {
  const { clock, zone } = useApp()
  const findings = rowsOf(view).map((row) => findingLine(row, clock.now.value, zone.value))
  const { good, checkedAt } = view.fields
  return (
    <>
      {findings.length === 0 ? null : (
        <section class="card">
          {findings.map(({ key, mark, text, since, effect, mend, link }) => (
            <div key={key} class="finding">
              <Glyph name={mark} />
              <div>
                <p>
                  <b class="strong">{text}</b> <span class="faint">{since}</span>
                </p>
                <p class="quiet">{effect}</p>
                <p>
                  {mend} {link === null ? null : <a href={link}>Show</a>}
                </p>
              </div>
            </div>
          ))}
        </section>
      )}
      <section class="card">
        <ul class="good-lines">
          {good.map(({ name, text }) => (
            <li key={name}>
              <Glyph name="done" />
              <span class="strong">{name}</span>
              <span class="quiet">{text}</span>
            </li>
          ))}
        </ul>
      </section>
      <p class="faint">
        Checked at <When at={checkedAt} />.
      </p>
    </>
  )
}

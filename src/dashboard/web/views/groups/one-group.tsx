import type { GroupFields } from '../../../protocol.js'
import { useApp } from '../../app-context.js'
import { Act } from '../../parts/act/act-button.js'
import { Bar } from '../../parts/bar.js'
import { BulkButton } from '../../parts/act/bulk.js'
import { Count } from '../../parts/count.js'
import { Page } from '../../parts/page.js'
import { Glyph, Mark } from '../../parts/state.js'
import type { StateName } from '../../parts/state.js'
import { term } from '../../route.js'
import { useTopic } from '../../use-topic.js'
import { crossRows, groupLine } from './computed.js'

/** One group: counts by state and queue, its end, its verbs. */
export function OneGroup({ id }: { id: string }) {
  const held = useTopic<'group'>(`group:${id}`)
  const { snapshot } = held
  return (
    <Page
      title={id}
      held={held}
      lead={snapshot && <Lead fields={snapshot.fields} />}
      tools={snapshot && <Tools fields={snapshot.fields} />}
    >
      {snapshot && <Body fields={snapshot.fields} />}
    </Page>
  )
}

function Lead({ fields }: { fields: GroupFields }) {
  const { clock, zone } = useApp()
  const { mark, word, ended, note } = groupLine(fields.group, clock.now.value, zone.value)
  return (
    <>
      <Mark name={mark} word={word} /> {ended} have ended <span class="quiet">{note}</span>
    </>
  )
}

function Tools({ fields }: { fields: GroupFields }) {
  const { id, sealed, counts, unfinished } = fields.group
  const ended = unfinished === 0 ? 'All of its jobs have ended.' : undefined
  return (
    <>
      {counts.failed === 0 ? null : (
        <BulkButton
          verb="bulk.retry"
          of={{ query: `${term('group', id)} state:failed` }}
          label={`Retry ${counts.failed}`}
        />
      )}
      <Act wish={{ verb: 'group.pause', target: id }} label="Pause" unavailable={ended} shortcut="pause" />
      <Act
        wish={{ verb: 'group.resume', target: id }}
        label="Resume"
        unavailable={counts.paused === 0 ? 'No job of it is paused.' : undefined}
      />
      <Act
        wish={{ verb: 'group.seal', target: id }}
        label="Seal"
        unavailable={sealed ? 'It is sealed: no job can join it.' : undefined}
      />
      <Act
        wish={{ verb: 'group.cancel', target: id }}
        label="Cancel"
        unavailable={ended}
        question={`${unfinished} jobs of ${id} will not run, or are asked to stop. Jobs that have ended stay as they are.`}
      />
    </>
  )
}

function Body({ fields }: { fields: GroupFields }) {
  const { clock, zone } = useApp()
  const { segments, total, ended } = groupLine(fields.group, clock.now.value, zone.value)
  return (
    <>
      <div class="card card-body">
        <Bar segments={segments} total={total} label={`${ended} have ended`} />
      </div>
      <section class="card">
        <div class="card-head">
          <h2>Jobs by queue and state</h2>
        </div>
        <ul class="card-body log">
          {crossRows(fields.group.id, fields.queues).map(({ queue, cells }) => (
            <li key={queue}>
              <b class="strong cross-name cut" title={queue}>
                {queue}
              </b>
              {cells.map(({ state, count, href }) => (
                <span key={state} class="mark">
                  <Glyph name={state as StateName} /> {state} <Count value={count} href={href} />
                </span>
              ))}
            </li>
          ))}
        </ul>
      </section>
    </>
  )
}

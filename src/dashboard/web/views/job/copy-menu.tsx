import type { JobFields, TextAnswer } from '../../../protocol.js'
import { useApp } from '../../app-context.js'
import { copyText } from '../../parts/copy-text.js'
import { Menu } from '../../parts/menu.js'

/** The link, the id, the record as JSON, a test of this job. */
export function CopyMenu({ job }: { job: JobFields }) {
  const { api, actions, session } = useApp()
  const copy = (what: string, text: () => string | Promise<string>) => (): void => {
    Promise.resolve(text())
      .then(copyText)
      .then(
        () => actions.say('good', `Copied ${what}.`),
        (error: Error) => actions.say('bad', error.message),
      )
  }
  const part = (name: string) => async (): Promise<string> => (await api.get<TextAnswer>(`job/${job.id}/${name}`)).text
  const refused = session.role === 'viewer' ? 'Viewers cannot copy a record. Ask for the operator role.' : undefined
  const items = [
    { label: 'Copy the link', hint: 'y', onClick: copy('the link', () => location.href) },
    { label: 'Copy the id', onClick: copy('the id', () => job.id) },
    { label: 'Copy as JSON', unavailable: refused, onClick: copy('the record', part('json')) },
    { label: 'Copy a test of it', unavailable: refused, onClick: copy('the test', part('test')) },
  ]
  return <Menu label="Copy" items={items} />
}

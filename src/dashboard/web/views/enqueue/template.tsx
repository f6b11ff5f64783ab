import { useState } from 'preact/hooks'
import type { EnqueueFormFields } from '../../../protocol.js'
import { useApp } from '../../app-context.js'
import { Empty } from '../../parts/empty.js'
import { Page } from '../../parts/page.js'
import { rowsOf, useTopic } from '../../use-topic.js'
import { jsonProblem } from '../job/edit-arguments.js'
import { fieldsOf, payloadOf, valuesFrom } from './computed.js'
import type { FormField } from './computed.js'

/** A form from the schema of a job; without one, its payload as JSON. */
export function EnqueuePage() {
  const { router } = useApp()
  const { job } = router.route.value.query
  const held = useTopic<'enqueue'>('enqueue')
  const { snapshot } = held
  const names = snapshot === undefined ? [] : rowsOf(snapshot)
  return (
    <Page title="Enqueue" held={held} lead="Enqueue a job by hand. The action is recorded in the audit trail.">
      <label class="labelled form">
        <span>Job</span>
        <select
          class="field"
          value={job ?? ''}
          onChange={({ currentTarget }) => router.set({ job: currentTarget.value || undefined })}
        >
          <option value="">Choose a job</option>
          {names.map(({ name, queue }) => (
            <option key={name} value={name}>
              {name} ({queue})
            </option>
          ))}
        </select>
      </label>
      {job === undefined ? null : <FormOf key={job} job={job} />}
    </Page>
  )
}

function FormOf({ job }: { job: string }) {
  const held = useTopic<'enqueue:'>(`enqueue:${job}`)
  if (held.gone !== undefined) return <Empty>{held.gone}</Empty>
  if (held.snapshot === undefined) return null
  const { fields } = held.snapshot
  const form = fieldsOf(fields.schema)
  return form === undefined ? <JsonForm fields={fields} /> : <SchemaForm fields={fields} form={form} />
}

function JsonForm({ fields }: { fields: EnqueueFormFields }) {
  const [text, setText] = useState(fields.lastPayload ?? '{}')
  const problem = jsonProblem(text)
  return (
    <div class="form">
      <label class="labelled">
        <span>Payload as JSON</span>
        <textarea
          class="field mono"
          rows={10}
          value={text}
          aria-invalid={problem !== undefined}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
      </label>
      <p class="ink-failed" role="status">
        {problem ?? ''}
      </p>
      <Send fields={fields} payload={text} isReady={problem === undefined} />
    </div>
  )
}

function SchemaForm({ fields, form }: { fields: EnqueueFormFields; form: readonly FormField[] }) {
  const [values, setValues] = useState<Record<string, string>>(() => valuesFrom(fields.lastPayload))
  const [hasTried, setTried] = useState(false)
  const { payload, problems } = payloadOf(form, values)
  return (
    <div class="form">
      {form.map((field) => (
        <Field
          key={field.name}
          field={field}
          value={values[field.name] ?? (field.kind === 'boolean' ? 'false' : '')}
          problem={hasTried ? problems[field.name] : undefined}
          onValue={(value) => setValues({ ...values, [field.name]: value })}
        />
      ))}
      <details>
        <summary>The payload</summary>
        <pre>{payload}</pre>
      </details>
      <Send
        fields={fields}
        payload={payload}
        isReady={Object.keys(problems).length === 0}
        onTry={() => setTried(true)}
      />
    </div>
  )
}

function Field({
  field,
  value,
  problem,
  onValue,
}: {
  field: FormField
  value: string
  problem: string | undefined
  onValue: (value: string) => void
}) {
  const { name, kind, choices, isRequired, description } = field
  const input = (event: { currentTarget: { value: string } }): void => onValue(event.currentTarget.value)
  const shared = { class: 'field', value, 'aria-invalid': problem !== undefined, onInput: input }
  return (
    <label class="labelled">
      <span>
        {name} {isRequired ? '' : <span class="faint">optional</span>} <span class="quiet">{description}</span>
      </span>
      {kind === 'choice' || kind === 'boolean' ? (
        <select {...shared}>
          {(kind === 'boolean' ? ['false', 'true'] : ['', ...choices]).map((choice) => (
            <option key={choice} value={choice}>
              {choice}
            </option>
          ))}
        </select>
      ) : kind === 'json' ? (
        <textarea {...shared} rows={3} />
      ) : (
        <input {...shared} inputMode={kind === 'number' ? 'decimal' : 'text'} />
      )}
      {problem === undefined ? null : <span class="ink-failed">{problem}</span>}
    </label>
  )
}

function Send({
  fields,
  payload,
  isReady,
  onTry,
}: {
  fields: EnqueueFormFields
  payload: string
  isReady: boolean
  onTry?: () => void
}) {
  const { actions, router } = useApp()
  const refused = actions.refusal('enqueue')
  const send = async (): Promise<void> => {
    onTry?.()
    if (!isReady || refused !== undefined) return
    const answer = await actions.act({ verb: 'enqueue', target: fields.job.name, args: { payload } })
    if (answer?.link) router.go(answer.link)
  }
  return (
    <div class="buttons">
      <button
        type="button"
        class={`button${refused === undefined ? ' primary' : ''}`}
        aria-disabled={refused !== undefined}
        title={refused}
        onClick={() => void send()}
      >
        Enqueue {fields.job.name}
      </button>
      <span class="quiet">into the queue {fields.job.queue}</span>
    </div>
  )
}

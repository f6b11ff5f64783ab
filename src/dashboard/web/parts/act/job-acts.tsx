import { useState } from 'preact/hooks'
import { useApp } from '../../app-context.js'
import { Act, Confirm } from './act-button.js'
import { jobActs, likelyAct } from './job-act-list.js'
import type { JobAct } from './job-act-list.js'
import { Menu } from '../menu.js'
import type { StateName } from '../state.js'
import { jobHref } from '../../route.js'

interface JobPlace {
  readonly id: string
  readonly state: StateName
  readonly name: string
}

/** The action that a row most probably needs, on the row itself. */
export function LikelyAct({ id, state, name }: JobPlace) {
  const act = likelyAct(state)
  if (act === undefined) return null
  return (
    <Act
      wish={{ verb: act.verb, target: id, expect: state }}
      label={`${act.label} ${name}`}
      icon={act.icon}
      question={act.question(name)}
      shortcut={act.shortcut}
    />
  )
}

/** All actions of a job; those that do not apply to its state are shown with the reason. */
export function JobMenu({ id, state, name }: JobPlace) {
  const { actions } = useApp()
  const [asked, setAsked] = useState<JobAct | undefined>(undefined)
  const items = jobActs(state).map((act) => ({
    label: act.label,
    unavailable: actions.refusal(act.verb) ?? act.unavailable,
    onClick: () => (act.asks ? setAsked(act) : void actions.act({ verb: act.verb, target: id, expect: state })),
  }))
  return (
    <>
      <Menu label={`More for ${name}`} items={[{ label: 'Open', href: jobHref(id) }, ...items]} />
      {asked === undefined ? null : (
        <Confirm
          wish={{ verb: asked.verb, target: id, expect: state }}
          label={asked.label}
          subject={name}
          question={asked.question(name)}
          onClose={() => setAsked(undefined)}
        />
      )}
    </>
  )
}

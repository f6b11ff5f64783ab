import { signal } from '@preact/signals'
import type { Role, SessionAnswer, Snapshot } from '../../protocol.js'
import { VERBS, canDo } from '../../protocol.js'
import type { Verb } from '../../protocol.js'
import { Actions } from '../act.js'
import { makeApp } from '../app.js'
import type { App } from '../app.js'
import { stillClock } from '../clock.js'
import type { Api } from '../connection/api.js'
import type { Live, Status } from '../connection/connection.js'
import { NOTHING_HELD } from '../connection/held.js'
import type { Held } from '../connection/held.js'
import type { Router } from '../router.js'
import { loadSettings } from '../settings.js'
import { DEMO_NOW, FRAMES, PARTS } from './frames.js'

/** The app on recorded frames: for the golden files of the templates, and to look at pages without a server. */
export function demoApp(
  router: Router,
  { role = 'admin', frames = FRAMES }: { role?: Role; frames?: readonly Snapshot[] } = {},
): App {
  const api = demoApi(role)
  const status = signal<Status>({ kind: 'live' })
  const settings = loadSettings(undefined)
  settings.utc.value = true
  return makeApp({
    api,
    session: demoSession(role),
    clock: stillClock(DEMO_NOW),
    live: demoLive(frames, status),
    router,
    actions: new Actions(api, () => role, status),
    settings,
  })
}

function demoLive(frames: readonly Snapshot[], status: Live['status']): Live {
  const held = new Map(frames.map((snapshot) => [snapshot.topic, signal<Held>({ ...NOTHING_HELD, snapshot })]))
  const nothing = signal(NOTHING_HELD)
  return {
    status,
    frozen: signal(false),
    held: (topic) => held.get(topic) ?? nothing,
    want: () => undefined,
    also: () => () => undefined,
  }
}

function demoSession(role: Role): SessionAnswer {
  return {
    role,
    actor: 'demo',
    verbs: (Object.keys(VERBS) as Verb[]).filter((verb) => canDo(role, verb)),
    csrf: '',
    canSignOut: true,
    title: 'shop',
    environment: 'production',
    build: 'demo',
    version: '0.0.0',
    store: { engine: 'PostgreSQL', name: 'shop' },
    links: [],
    now: DEMO_NOW,
  }
}

function demoApi(role: Role): Api {
  const answers: Readonly<Record<string, unknown>> = {
    complete: {
      from: 0,
      to: 3,
      options: [
        { insert: 'state:failed ', label: 'state:failed', hint: 'jobs in this state', count: null },
        { insert: 'state:ready ', label: 'state:ready', hint: 'jobs in this state', count: null },
      ],
    },
    preview: {
      id: 'p1',
      verb: 'bulk.retry',
      count: { n: 400, exact: true },
      states: { failed: { n: 398, exact: true }, parked: { n: 2, exact: true } },
      untouched: { n: 12, exact: true },
      examples: Object.values(FRAMES[2]?.rows ?? {}).slice(0, 5),
      asOf: DEMO_NOW,
      mustType: false,
    },
    act: {
      changed: true,
      text: 'Retried charge 01980f2c.',
      state: 'ready',
      link: '#/job/1',
      undo: null,
      id: null,
      count: null,
    },
  }
  return {
    session: async () => demoSession(role),
    post: async <Answer>(path: string): Promise<Answer> => answers[path] as Answer,
    get: async <Answer>(path: string): Promise<Answer> => PARTS[path.split('/').at(-1) ?? ''] as Answer,
    stream: () => Promise.reject(new Error('the demo has no stream')),
  }
}

import { VERBS } from '../protocol/verbs.js'
import type { ActArguments, ActRequest, Verb } from '../protocol/verbs.js'
import type {
  CompleteRequest,
  LoginRequest,
  PreviewRequest,
  SearchRequest,
  StreamRequest,
  ViewRequest,
} from '../protocol/calls.js'
import { SORTS } from '../protocol/topics.js'
import { SEARCH_MAX } from '../search.js'
import { Refusal } from './parts.js'

/*
 * Every body is read field by field: what is not named here does not reach the server's code, and every text and number has a bound.
 */

const NAME_MAX = 200
const TOPIC_MAX = 1_200
const TOPICS_MAX = 16
const CURSOR_MAX = 300
const REASON_MAX = 500
const NONCE_MIN = 16
const NONCE_MAX = 64
const JSON_MAX = 1_048_576
const LABELS_MAX = 16
const IDS_MAX = 500
const LIMIT_MAX = 50
const TOKEN_MAX = 1_000
/** The year 10000. */
const TIME_MAX = 253_402_300_800_000
const PRIORITY_MAX = 1_000_000

type Fields = Readonly<Record<string, unknown>>

function object(value: unknown): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Refusal('bad-request', 'The body must be an object.')
  return value as Fields
}

function refuse(name: string, what: string): never {
  throw new Refusal('bad-request', `${name} must be ${what}.`)
}

function text(of: Fields, name: string, max: number, min = 1): string {
  const value = own(of, name)
  if (typeof value !== 'string' || value.length < min || value.length > max)
    refuse(name, `a text of ${min} to ${max} characters`)
  return value as string
}

function own(of: Fields, name: string): unknown {
  return Object.hasOwn(of, name) ? of[name] : undefined
}

function optional<T>(of: Fields, name: string, read: () => T): T | undefined {
  const value = own(of, name)
  return value === undefined || value === null ? undefined : read()
}

function number(of: Fields, name: string, min: number, max: number): number {
  const value = own(of, name)
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < min || value > max)
    refuse(name, `a whole number from ${min} to ${max}`)
  return value as number
}

function texts(of: Fields, name: string, count: number, max: number): readonly string[] {
  const value = own(of, name)
  const isList =
    Array.isArray(value) &&
    value.length <= count &&
    value.every((each) => typeof each === 'string' && each.length <= max)
  if (!isList) refuse(name, `a list of at most ${count} texts`)
  return value as readonly string[]
}

export function readLogin(body: unknown): LoginRequest {
  return { token: text(object(body), 'token', TOKEN_MAX) }
}

export function readViewRequest(body: unknown): ViewRequest {
  const of = object(body)
  return {
    topic: text(of, 'topic', TOPIC_MAX),
    have: optional(of, 'have', () => text(of, 'have', CURSOR_MAX)),
    cursor: optional(of, 'cursor', () => text(of, 'cursor', CURSOR_MAX)),
  }
}

export function readStreamRequest(body: unknown): StreamRequest {
  const of = object(body)
  const topics = texts(of, 'topics', TOPICS_MAX, TOPIC_MAX)
  if (topics.length === 0) refuse('topics', 'a list of at least one topic')
  const have = optional(of, 'have', () => object(own(of, 'have')))
  const known = topics.flatMap((topic) => {
    const id = have === undefined ? undefined : own(have, topic)
    return typeof id === 'string' && id.length <= CURSOR_MAX ? [[topic, id] as const] : []
  })
  return { topics: [...new Set(topics)], have: Object.fromEntries(known) }
}

export function readSearchRequest(body: unknown): SearchRequest {
  const of = object(body)
  const sort = optional(of, 'sort', () => text(of, 'sort', NAME_MAX))
  if (sort !== undefined && !(SORTS as readonly string[]).includes(sort)) refuse('sort', `one of ${SORTS.join(', ')}`)
  return {
    query: text(of, 'query', SEARCH_MAX, 0),
    sort: sort as SearchRequest['sort'],
    workflows: own(of, 'workflows') === true,
    cursor: optional(of, 'cursor', () => text(of, 'cursor', CURSOR_MAX)),
    limit: optional(of, 'limit', () => number(of, 'limit', 1, LIMIT_MAX)),
  }
}

export function readCompleteRequest(body: unknown): CompleteRequest {
  const of = object(body)
  return { text: text(of, 'text', SEARCH_MAX, 0), caret: number(of, 'caret', 0, SEARCH_MAX) }
}

const BULK_VERBS = ['bulk.retry', 'bulk.cancel', 'bulk.pause', 'bulk.resume', 'bulk.delete'] as const

export function readPreviewRequest(body: unknown): PreviewRequest {
  const of = object(body)
  const verb = text(of, 'verb', NAME_MAX) as PreviewRequest['verb']
  if (!BULK_VERBS.includes(verb)) refuse('verb', `one of ${BULK_VERBS.join(', ')}`)
  const what = object(own(of, 'of'))
  if (own(what, 'query') !== undefined) return { verb, of: { query: text(what, 'query', SEARCH_MAX) } }
  if (own(what, 'fingerprint') !== undefined) return { verb, of: { fingerprint: hexadecimal(what, 'fingerprint') } }
  return { verb, of: { ids: texts(what, 'ids', IDS_MAX, NAME_MAX) } }
}

function hexadecimal(of: Fields, name: string): string {
  const value = text(of, name, NONCE_MAX)
  return /^[0-9a-f]+$/.test(value) ? value : refuse(name, 'hexadecimal digits')
}

export function readActRequest(body: unknown): ActRequest {
  const of = object(body)
  const verb = text(of, 'verb', NAME_MAX)
  if (!Object.hasOwn(VERBS, verb)) refuse('verb', 'a verb of the dashboard')
  return {
    verb: verb as Verb,
    target: text(of, 'target', NAME_MAX),
    expect: optional(of, 'expect', () => text(of, 'expect', NAME_MAX)),
    nonce: text(of, 'nonce', NONCE_MAX, NONCE_MIN),
    reason: optional(of, 'reason', () => text(of, 'reason', REASON_MAX, 0)),
    args: optional(of, 'args', () => readArguments(object(own(of, 'args')))),
  }
}

function readArguments(of: Fields): ActArguments {
  const time = (name: string): number | undefined => optional(of, name, () => number(of, name, 0, TIME_MAX))
  const name = (field: string): string | undefined => optional(of, field, () => text(of, field, NAME_MAX))
  return {
    until: time('until'),
    fresh: own(of, 'fresh') === true ? true : undefined,
    unwind: own(of, 'unwind') === false ? false : undefined,
    event: name('event'),
    payload: optional(of, 'payload', () => text(of, 'payload', JSON_MAX, 0)),
    title: optional(of, 'title', () => text(of, 'title', REASON_MAX)),
    labels: optional(of, 'labels', () => texts(of, 'labels', LABELS_MAX, NAME_MAX)),
    queue: name('queue'),
    priority: optional(of, 'priority', () => number(of, 'priority', -PRIORITY_MAX, PRIORITY_MAX)),
    dueAt: time('dueAt'),
    key: name('key'),
    group: name('group'),
    from: time('from'),
    to: time('to'),
  }
}

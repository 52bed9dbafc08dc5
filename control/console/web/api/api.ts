/** Requests to the API. The session is a cookie that the browser attaches. */
import type { ErrorBody, ImportReport, NumberReport, PageMeta } from './views.ts'
import { noteAnswer } from './live.ts'

export type ConsoleAnswer<T> =
  | {
      readonly kind: 'ok'
      readonly data: T
      readonly meta: PageMeta | undefined
      /** The change that was made, where the server keeps it. */
      readonly changeId?: string | undefined
      /** The version of what is shown. */
      readonly etag?: string | undefined
    }
  /** The session is over, or there was none. */
  | { readonly kind: 'signed-out' }
  | ApiFailure

export interface ApiFailure {
  readonly kind: 'failed'
  /** The words of the API, or that it cannot be reached. */
  readonly message: string
  readonly code: string
  /** The message without the reasons of `details`. */
  readonly headline?: string
  /** Problems of the body, each with its field. */
  readonly details?: ErrorBody['details']
  /** Others have changed it meanwhile. */
  readonly conflict?: EditConflict
  /** When the API takes requests of this user again; absent: it refused for another reason. */
  readonly retryAfterMs?: number
}

/** Changes that others have made since a form, or a question, was opened. */
export interface EditConflict {
  /** The thing is to be deleted: nothing is chosen. */
  readonly isRemoval?: boolean
  /** The version with their changes. */
  readonly etag: string
  readonly fields: readonly ConflictField[]
}

/** One field, in words. */
export interface ConflictField {
  readonly name: string
  readonly label: string
  readonly there: string
  /** As it was when the person saw it. */
  readonly was: string
  /** Undefined: it was not changed in the form. */
  readonly yours: string | undefined
}

interface Envelope<T> {
  readonly data: T
  readonly meta?: PageMeta
}

/** An answer in the envelope. */
export async function get<T>(path: string): Promise<ConsoleAnswer<T>> {
  return enveloped(await ask<Envelope<T>>('GET', path))
}

export interface ListedRows<T> {
  readonly rows: readonly T[]
  /** Length of the whole list. */
  readonly total: number
}

/** One page of a list: `path` names it. */
export async function getRows<T>(path: string): Promise<ConsoleAnswer<ListedRows<T>>> {
  const answer = await get<readonly T[]>(path)
  if (answer.kind !== 'ok') return answer
  const { data, meta } = answer
  return { ...answer, data: { rows: data, total: meta?.total ?? data.length } }
}

/** The most that one page of the API has. */
const PAGE_ROWS = 200
const MAX_PAGES = 10

/** A list from its beginning; one that is longer than `MAX_PAGES` pages is cut. */
export async function getAll<T>(path: string, search = ''): Promise<ConsoleAnswer<ListedRows<T>>> {
  const wanted = search === '' ? '' : `&search=${encodeURIComponent(search)}`
  const first = await getRows<T>(`${path}?limit=${PAGE_ROWS}${wanted}`)
  if (first.kind !== 'ok') return first
  const rows = [...first.data.rows]
  const { total } = first.data
  const pages = Math.min(Math.ceil(total / PAGE_ROWS), MAX_PAGES)
  for (let page = 2; page <= pages; page += 1) {
    const next = await get<readonly T[]>(`${path}?limit=${PAGE_ROWS}&page=${page}${wanted}`)
    if (next.kind !== 'ok') return next
    rows.push(...next.data)
  }
  return { ...first, data: { rows, total } }
}

/** An answer without the envelope. */
export const getBare = <T>(path: string): Promise<ConsoleAnswer<T>> => ask<T>('GET', path)

/** A request that changes something. */
export async function send<T>(
  method: 'POST' | 'PUT' | 'PATCH' | 'DELETE',
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<ConsoleAnswer<T>> {
  return enveloped(await ask<Envelope<T>>(method, path, body, headers))
}

export interface RateImportForm {
  readonly mode: string
  readonly isDryRun: boolean
  /** A line without a prefix is meant: it prices every number. */
  readonly allowsDefault: boolean
}

/** Imports a table of comma-separated values into a rate plan; a dry run only checks it. */
export async function importRates(
  planId: number,
  table: string,
  { mode, isDryRun, allowsDefault }: RateImportForm,
): Promise<ConsoleAnswer<ImportReport>> {
  const words = new URLSearchParams({
    rate_plan_id: `${planId}`,
    mode,
    dry_run: `${isDryRun}`,
    allow_default: `${allowsDefault}`,
  })
  const type = { 'Content-Type': 'text/csv' }
  return enveloped(await ask<Envelope<ImportReport>>('POST', `/rates/import?${words}`, table, type))
}

/** Imports a table of numbers; a dry run only checks it. */
export async function importNumbers(
  table: string,
  isDryRun: boolean,
): Promise<ConsoleAnswer<NumberReport>> {
  const path = `/numbers/import?dry_run=${isDryRun}`
  const type = { 'Content-Type': 'text/csv' }
  return enveloped(await ask<Envelope<NumberReport>>('POST', path, table, type))
}

export interface SentDeck {
  /** Says how columns and cells are meant. Undefined: it is proposed, or remembered. */
  readonly mapping?: object | undefined
  readonly mode?: string
  readonly fileName?: string
}

/** Sends the deck of a carrier: to be previewed, compared or, without a step, imported. */
export async function sendDeck<T>(
  planId: number,
  step: '' | '/preview' | '/diff',
  deck: Blob,
  { mapping, mode, fileName }: SentDeck,
): Promise<ConsoleAnswer<T>> {
  const words = new URLSearchParams({ rate_plan_id: `${planId}` })
  if (mapping !== undefined) words.set('mapping', JSON.stringify(mapping))
  if (mode !== undefined) words.set('mode', mode)
  if (fileName !== undefined) words.set('file_name', fileName)
  const type = { 'Content-Type': 'application/octet-stream' }
  const path = `/rates/decks${step}?${words.toString()}`
  return enveloped(await ask<Envelope<T>>('POST', path, deck, type))
}

/** Extensions are answered without an envelope. */
function enveloped<T>(answer: ConsoleAnswer<Envelope<T> | T>): ConsoleAnswer<T> {
  if (answer.kind !== 'ok') return answer
  const { data: body } = answer
  if (!isEnvelope(body)) return { ...answer, data: body }
  return { ...answer, data: body.data, meta: body.meta }
}

const isEnvelope = <T>(body: Envelope<T> | T): body is Envelope<T> =>
  typeof body === 'object' && body !== null && 'success' in body

const unreachable: ApiFailure = {
  kind: 'failed',
  message: 'The server does not answer',
  code: 'unreachable',
}

/** Requests of this user that the API still takes, as its last answer said. */
let leftInWindow = Infinity

export const requestsLeft = (): number => leftInWindow

/** Texts and files go as they are, anything else as JSON. */
const sent = (body: unknown): string | Blob =>
  typeof body === 'string' || body instanceof Blob ? body : JSON.stringify(body)

async function ask<T>(
  method: string,
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<ConsoleAnswer<T>> {
  try {
    const response = await fetch(`/api/v1${path}`, {
      method,
      headers: {
        Accept: 'application/json',
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: sent(body) }),
    })
    noteAnswer(path, response.headers.get('X-Unreachable-Nodes'))
    leftInWindow = Number(response.headers.get('X-RateLimit-Remaining') ?? leftInWindow)
    const parsed = (await response.json()) as unknown
    const changeId = response.headers.get('X-Change-Id') ?? undefined
    const etag = response.headers.get('ETag') ?? undefined
    if (response.ok) return { kind: 'ok', data: parsed as T, meta: undefined, changeId, etag }
    const { error, code, details } = parsed as ErrorBody
    if (response.status === 401 && code === 'unauthorized') return { kind: 'signed-out' }
    const reasons = (details ?? []).map((each) => `${each.path}: ${each.message}`)
    const message = [error, ...reasons].join('. ')
    const failure: ApiFailure = { kind: 'failed', message, code, headline: error, details }
    if (response.status !== 429) return failure
    const seconds = Number(response.headers.get('Retry-After') ?? 1)
    return { ...failure, retryAfterMs: seconds * 1_000 }
  } catch {
    return unreachable
  }
}

/** Requests to the API. The session is a cookie that the browser attaches. */
import type { Error as ErrorBody, PageMeta } from './api-types.ts'

export type Answer<T> =
  | { readonly kind: 'ok'; readonly data: T; readonly meta: PageMeta | undefined }
  /** The session is over, or there was none. */
  | { readonly kind: 'signed-out' }
  | Failure

export interface Failure {
  readonly kind: 'failed'
  /** As the API puts it, or that it cannot be reached. */
  readonly message: string
  readonly code: string
}

interface Envelope<T> {
  readonly data: T
  readonly meta?: PageMeta
}

/** An answer in the envelope. */
export async function get<T>(path: string): Promise<Answer<T>> {
  return enveloped(await ask<Envelope<T>>('GET', path))
}

/** An answer without the envelope. */
export const getBare = <T>(path: string): Promise<Answer<T>> => ask<T>('GET', path)

/** A request that changes something. */
export async function send<T>(
  method: 'POST' | 'PUT' | 'PATCH' | 'DELETE',
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer<T>> {
  return enveloped(await ask<Envelope<T>>(method, path, body, headers))
}

const enveloped = <T>(answer: Answer<Envelope<T>>): Answer<T> =>
  answer.kind === 'ok' ? { kind: 'ok', data: answer.data.data, meta: answer.data.meta } : answer

const unreachable: Failure = {
  kind: 'failed',
  message: 'The server does not answer',
  code: 'unreachable',
}

async function ask<T>(
  method: string,
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer<T>> {
  try {
    const response = await fetch(`/api/v1${path}`, {
      method,
      headers: {
        Accept: 'application/json',
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const parsed = (await response.json()) as unknown
    if (response.ok) return { kind: 'ok', data: parsed as T, meta: undefined }
    const { error, code, details } = parsed as ErrorBody
    if (response.status === 401 && code === 'unauthorized') return { kind: 'signed-out' }
    const reasons = (details ?? []).map((each) => `${each.path}: ${each.message}`)
    return { kind: 'failed', message: [error, ...reasons].join('. '), code }
  } catch {
    return unreachable
  }
}

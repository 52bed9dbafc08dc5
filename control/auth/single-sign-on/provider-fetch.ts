/**
 * Requests to identity providers: bounded in time and size, without redirects, and only to
 * addresses that were checked.
 */
import http from 'node:http'
import https from 'node:https'
import { isIP } from 'node:net'
import type { CustomFetch } from 'openid-client'
import type { Schedule } from '../../../schema/clock.ts'
import {
  guardedLookup,
  hostOf,
  isTargetAllowed,
  type TargetRules,
} from '../../../schema/net/http-target.ts'

export interface ProviderFetchDeps extends TargetRules {
  readonly schedule: Schedule
}

/** DNS, connection and answer together. */
const TIMEOUT_MS = 5_000
const MAX_ANSWER_BYTES = 512 * 1_024
const MAX_HEADER_BYTES = 16_384

export const providerFetch =
  (deps: ProviderFetchDeps): CustomFetch =>
  async (address, { method, headers, body }) => {
    const url = new URL(address)
    const host = hostOf(url)
    // Literal addresses are never looked up.
    if (isIP(host) !== 0 && !isTargetAllowed(host, deps))
      throw new Error('the target is a private address')
    if (url.protocol !== 'https:' && !deps.allowPrivate) throw new Error('the target is not https')
    const sent = body == null ? undefined : String(body as string | URLSearchParams)
    return exchange(url, { method, headers, sent }, deps)
  }

interface Sent {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly sent: string | undefined
}

function exchange(
  url: URL,
  { method, headers, sent }: Sent,
  deps: ProviderFetchDeps,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const request = (url.protocol === 'https:' ? https : http).request(url, {
      method,
      agent: false,
      lookup: guardedLookup(deps),
      maxHeaderSize: MAX_HEADER_BYTES,
      headers: {
        ...headers,
        'accept-encoding': 'identity',
        connection: 'close',
        ...(sent !== undefined && { 'content-length': String(Buffer.byteLength(sent)) }),
      },
    })
    const cancel = deps.schedule(
      () => request.destroy(new Error(`no answer within ${TIMEOUT_MS} ms`)),
      TIMEOUT_MS,
    )
    const fail = (error: Error): void => {
      cancel()
      request.destroy()
      reject(error)
    }
    request.on('error', fail)
    request.on('response', (response) => {
      const chunks: Buffer[] = []
      let length = 0
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk)
        length += chunk.length
        if (length > MAX_ANSWER_BYTES) fail(new Error('the answer is too long'))
      })
      response.on('error', fail)
      response.on('close', () => fail(new Error('the connection was closed')))
      response.on('end', () => {
        cancel()
        resolve(answerOf(response, Buffer.concat(chunks)))
      })
    })
    request.end(sent)
  })
}

function answerOf({ statusCode, headers }: http.IncomingMessage, body: Buffer): Response {
  const { 'content-type': type } = headers
  const status = statusCode ?? 502
  const isEmpty = status === 204 || status === 304
  return new Response(isEmpty ? null : new Uint8Array(body), {
    status: status < 200 || status > 599 ? 502 : status,
    headers: type === undefined ? {} : { 'content-type': type },
  })
}

/**
 * One GET for a certificate or a revocation list: one answer within a limit of time and size. No
 * redirect is followed, and only addresses that were checked are connected to.
 */
import http from 'node:http'
import https from 'node:https'
import { isIP } from 'node:net'
import type { Schedule } from '../../schema/clock.ts'
import {
  guardedLookup,
  hostOf,
  isTargetAllowed,
  type TargetRules,
} from '../../schema/net/http-target.ts'

export interface GetDeps extends TargetRules {
  readonly schedule: Schedule
}

export type Got =
  | {
      readonly kind: 'got'
      readonly body: Buffer
      /** `max-age` of the answer; undefined: it does not say. */
      readonly maxAgeSeconds: number | undefined
    }
  | { readonly kind: 'failed'; readonly reason: string }

/** DNS, connection and answer together. */
const GET_TIMEOUT_MS = 2_000
const MAX_REASON_LENGTH = 200

export function boundedGet(url: URL, maxBytes: number, deps: GetDeps): Promise<Got> {
  const host = hostOf(url)
  // Literal addresses are never looked up.
  if (isIP(host) !== 0 && !isTargetAllowed(host, deps))
    return Promise.resolve(failed('the target is a private address'))
  return new Promise((resolve) => {
    const request = (url.protocol === 'https:' ? https : http).request(url, {
      agent: false,
      lookup: guardedLookup(deps),
      headers: { accept: '*/*', 'accept-encoding': 'identity', connection: 'close' },
      maxHeaderSize: 8_192,
    })
    let isOver = false
    const end = (got: Got): void => {
      if (isOver) return
      isOver = true
      cancel()
      request.destroy()
      resolve(got)
    }
    const cancel = deps.schedule(
      () => end(failed(`no answer within ${GET_TIMEOUT_MS} ms`)),
      GET_TIMEOUT_MS,
    )
    request.on('response', (response) => read(response, maxBytes, end))
    request.on('upgrade', () => end(failed('the answer changes the protocol')))
    request.on('error', (error) =>
      end(failed((error.message || error.name).slice(0, MAX_REASON_LENGTH))),
    )
    request.on('close', () => end(failed('the connection was closed')))
    request.end()
  })
}

function read(response: http.IncomingMessage, maxBytes: number, end: (got: Got) => void): void {
  const { statusCode = 0, headers } = response
  if (statusCode >= 300 && statusCode < 400)
    return end(failed(`status ${statusCode}: redirects are not followed`))
  if (statusCode !== 200) return end(failed(`status ${statusCode} where 200 is expected`))
  const tooLong = failed(`the answer is longer than ${maxBytes} bytes`)
  if (Number(headers['content-length'] ?? 0) > maxBytes) return end(tooLong)
  const chunks: Buffer[] = []
  let length = 0
  response.on('data', (chunk: Buffer) => {
    length += chunk.length
    if (length > maxBytes) end(tooLong)
    else chunks.push(chunk)
  })
  response.on('error', (error) => end(failed(error.message.slice(0, MAX_REASON_LENGTH))))
  response.on('end', () => {
    if (!response.complete) return end(failed('the answer was cut off'))
    const maxAgeSeconds = maxAgeIn(headers['cache-control'] ?? '')
    return end({ kind: 'got', body: Buffer.concat(chunks), maxAgeSeconds })
  })
}

function maxAgeIn(cacheControl: string): number | undefined {
  if (/\bno-(?:store|cache)\b/i.test(cacheControl)) return 0
  const seconds = /\bmax-age\s*=\s*"?(?<seconds>\d{1,9})/i.exec(cacheControl)?.groups?.['seconds']
  return seconds === undefined ? undefined : Number(seconds)
}

const failed = (reason: string): Got => ({ kind: 'failed', reason })

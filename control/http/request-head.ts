/**
 * Reads and sets headers directly on Node's request and response where they exist: they are parsed already,
 * and a header set with `c.header()` forces Hono to build a whole Response.
 */
import type { Context } from 'hono'
import { ApiAnswer } from './api-answer.ts'
import type { ControlEnv } from './control-env.ts'

export function requestHeader(c: Context<ControlEnv>, name: Lowercase<string>): string | undefined {
  const incoming = bindings(c)?.incoming
  if (incoming === undefined) return c.req.header(name)
  const value = incoming.headers[name]
  return typeof value === 'string' ? value : value?.join(', ')
}

/** Call it before the handler; afterwards a header would force a whole Response to be built. */
export function setAnswerHeader(c: Context<ControlEnv>, name: string, value: string): void {
  const answer = answerOf(c)
  if (answer === undefined) c.header(name, value)
  else answer.setEarly(name, value)
}

/** The address of the socket's peer. */
export function peerAddress(c: Context<ControlEnv>): string {
  const env = bindings(c)
  return env?.incoming?.socket.remoteAddress ?? env?.remoteAddress ?? '127.0.0.1'
}

/** Undefined for `app.request()` in tests, which has no Node response. */
export function answerOf(c: Context<ControlEnv>): ApiAnswer | undefined {
  const outgoing = bindings(c)?.outgoing
  return outgoing instanceof ApiAnswer ? outgoing : undefined
}

/** `app.request()` without an environment leaves `c.env` undefined, whatever its type says. */
const bindings = (c: Context<ControlEnv>): ControlEnv['Bindings'] | undefined => c.env

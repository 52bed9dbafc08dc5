/**
 * Reads and sets headers directly on Node's request and response: they are parsed already, and a header set
 * with `c.header()` forces Hono to build a whole Response.
 */
import type { Context } from 'hono'
import type { ApiAnswer } from './api-answer.ts'
import type { ControlEnv } from './control-env.ts'

export function requestHeader(c: Context<ControlEnv>, name: Lowercase<string>): string | undefined {
  const value = c.env.incoming.headers[name]
  return typeof value === 'string' ? value : value?.join(', ')
}

/** Call it before the handler; afterwards a header would force a whole Response to be built. */
export function setAnswerHeader(c: Context<ControlEnv>, name: string, value: string): void {
  answerOf(c).setEarly(name, value)
}

/** The address of the socket's peer; empty once the connection is closed. */
export const peerAddress = (c: Context<ControlEnv>): string =>
  c.env.incoming.socket.remoteAddress ?? ''

export const answerOf = (c: Context<ControlEnv>): ApiAnswer => c.env.outgoing

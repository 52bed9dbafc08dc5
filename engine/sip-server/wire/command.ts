/** Commands of a drachtio application, read from wire payloads, where a field is a position. */
import type { AppCommand } from '../application.ts'
import { parseAppMessage } from '../../../schema/sip/parse.ts'

/**
 * Reads one wire payload from an application. A payload that cannot be read is a value with its
 * reason.
 */
export function decodeCommand(payload: string): AppCommand {
  const endOfLeader = payload.indexOf('\r\n')
  const leader = endOfLeader === -1 ? payload : payload.slice(0, endOfLeader)
  const message = endOfLeader === -1 ? '' : payload.slice(endOfLeader + 2)
  const tokens = leader.split('|')
  const [id = '', type, first = '', second = '', third = ''] = tokens
  switch (type) {
    case 'sip':
      if (tokens.length < 4) return unreadable(id, 'sip needs a transaction id and a dialog id')
      if (message === '') return unreadable(id, 'sip needs a message')
      return {
        id,
        command: {
          kind: 'sip',
          transactionId: first,
          dialogId: second,
          routeUrl: third,
          message: parseAppMessage(message),
        },
      }
    case 'ping':
      return { id, command: { kind: 'ping' } }
    case 'route':
      return verbCommand(id, 'route', first)
    case 'remove_route':
      return verbCommand(id, 'remove-route', first)
    case 'authenticate':
      return { id, command: { kind: 'authenticate', secret: first, tags: splitTags(second) } }
    case 'proxy':
      return decodeProxy(id, tokens, message)
    case undefined:
      return unreadable(id, 'a message type is missing')
    default:
      return unreadable(id, 'unknown message type')
  }
}

const unreadable = (id: string, problem: string): AppCommand => ({
  id,
  command: undefined,
  problem,
})

function verbCommand(id: string, kind: 'route' | 'remove-route', verb: string): AppCommand {
  if (verb === '') return unreadable(id, 'a verb is missing')
  return { id, command: { kind, verb: verb.toLowerCase() } }
}

const splitTags = (tags: string): readonly string[] => (tags === '' ? [] : tags.split(','))

function decodeProxy(id: string, tokens: readonly string[], message: string): AppCommand {
  const [, , transactionId = '', remain, full, redirects, order, provisional = '', final = ''] =
    tokens
  const destinations = tokens.slice(9).filter((destination) => destination !== '')
  if (transactionId === '') return unreadable(id, 'proxy needs a transaction id')
  if (destinations.length === 0) return unreadable(id, 'proxy needs a destination')
  return {
    id,
    command: {
      kind: 'proxy',
      transactionId,
      remainInDialog: remain === 'remainInDialog',
      fullResponse: full === 'fullResponse',
      followRedirects: redirects === 'followRedirects',
      simultaneous: order === 'simultaneous',
      provisionalTimeoutMs: parseTimeout(provisional),
      finalTimeoutMs: parseTimeout(final),
      destinations,
      message: parseAppMessage(message),
    },
  }
}

/** `500ms` or `2s`, in milliseconds. */
function parseTimeout(text: string): number | undefined {
  const parts = /^(\d{1,9})(ms|s)$/.exec(text)
  if (parts === null) return undefined
  return Number(parts[1]) * (parts[2] === 's' ? 1_000 : 1)
}

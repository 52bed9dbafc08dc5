/** One INVITE to a SIP server from a socket of its own, which no application should answer. */
import { createSocket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import { hostPort } from '../../../sip-server/message/index.ts'
import type { Schedule } from '../../deadlines.ts'

export interface Place {
  readonly host: string
  readonly port: number
}

const REPEAT_MS = 200
const PATIENCE_MS = 600
/** What was sent last is on its way by then. */
const LINGER_MS = 20

/** Its final status; undefined: no place has answered. */
export async function knock(
  places: readonly Place[],
  user: string,
  schedule: Schedule,
): Promise<number | undefined> {
  for (const place of places) {
    const status = await knockAt(place, user, schedule)
    if (status !== undefined) return status
  }
  return undefined
}

function knockAt(
  { host, port }: Place,
  user: string,
  schedule: Schedule,
): Promise<number | undefined> {
  const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4')
  const send = (text: string): void => socket.send(text, port, host, () => undefined)
  const uri = `sip:${user}@${hostPort(host, port)}`
  return new Promise((resolve) => {
    let isOver = false
    const end = (status: number | undefined): void => {
      if (isOver) return
      isOver = true
      for (const cancel of timers) cancel()
      resolve(status)
      schedule(() => socket.close(), LINGER_MS)
    }
    const timers = [schedule(() => end(undefined), PATIENCE_MS)]
    socket.on('error', () => end(undefined))
    socket.on('message', (bytes) => {
      const text = bytes.toString()
      const status = Number(/^SIP\/2\.0 (\d{3}) /.exec(text)?.[1] ?? 0)
      if (isOver || status < 200 || !text.includes(user)) return
      const to = /^To:[ \t]*([^\r]*)/im.exec(text)?.[1] ?? `<${uri}>`
      send(request('ACK', uri, user, to))
      // An application that takes this INVITE is told to drop it.
      if (status < 300) send(request('BYE', uri, user, to))
      end(status)
    })
    socket.bind(0, () => {
      if (isOver) return
      const invite = request('INVITE', uri, user, `<${uri}>`)
      send(invite)
      timers.push(schedule(() => send(invite), REPEAT_MS))
    })
  })
}

/** Max-Forwards 0: an application that checks it refuses the call, and none forwards it. */
function request(method: 'INVITE' | 'ACK' | 'BYE', uri: string, user: string, to: string): string {
  const branch = `z9hG4bK-${method === 'BYE' ? 'bye-' : ''}${user}`
  return [
    `${method} ${uri} SIP/2.0`,
    `Via: SIP/2.0/UDP tollgate.invalid;rport;branch=${branch}`,
    'Max-Forwards: 0',
    `From: <sip:${user}@tollgate.invalid>;tag=${user}`,
    `To: ${to}`,
    `Call-ID: ${user}`,
    `CSeq: ${method === 'BYE' ? 2 : 1} ${method}`,
    `Contact: <sip:${user}@tollgate.invalid>`,
    'Content-Length: 0',
    '',
    '',
  ].join('\r\n')
}

import type { Log } from '../../../schema/contracts/log.ts'
import { respond } from '../../call/sip-headers.ts'
import { type UacEnd, UserAgent } from '../../call/user-agent/user-agent.ts'
import type { CommandContext } from '../command.ts'
import { callerNumber } from './demo-data.ts'
import { createSipServer } from '../../sip-server/index.ts'

export interface Endpoint {
  readonly client: UserAgent
  readonly port: number
  stop(): Promise<void>
}

/**
 * One SIP endpoint of the demo on a free loopback port: an embedded server of its own with a user agent on it.
 */
export async function startEndpoint(
  context: CommandContext,
  log: Log,
  prepare: (client: UserAgent) => void,
  host = '127.0.0.1',
): Promise<Endpoint> {
  const secret = context.randomBytes(16).toString('hex')
  const server = createSipServer({
    listen: [{ protocol: 'udp', host, port: 0 }],
    secret,
    log,
  })
  await server.start()
  const client = new UserAgent(log)
  prepare(client)
  const open = server.connectApplication.bind(server)
  const connected = await client.connect({ kind: 'in-process', open, secret })
  const port = server.listeners[0]?.port
  if (connected.kind === 'refused' || port === undefined)
    throw new Error('a demo endpoint cannot connect to its SIP server')
  const stop = async () => {
    client.disconnect()
    await server.stop()
  }
  return { client, port, stop }
}

/** The session description of an endpoint that would talk G.711; nothing is ever sent. */
export const silentAudio = [
  'v=0',
  'o=- 1 1 IN IP4 127.0.0.1',
  's=-',
  'c=IN IP4 127.0.0.1',
  't=0 0',
  'm=audio 40000 RTP/AVP 0',
  'a=rtpmap:0 PCMU/8000',
  '',
].join('\r\n')

const ringingMs = 300

/** A backend PBX node that rings and answers; numbers that end in 9 are busy. */
export const startPbxNode = (context: CommandContext, log: Log, host?: string): Promise<Endpoint> =>
  startEndpoint(context, log, (client) => answerCalls(client, context), host)

function answerCalls(client: UserAgent, context: CommandContext): void {
  client.handle('OPTIONS', (_request, answer) => respond(answer, 200))
  client.handle('INVITE', (request, answer) => {
    if (/^sip:[^@]*9@/.test(request.uri)) {
      respond(answer, 486)
      return
    }
    respond(answer, 180)
    const pickUp = () => client.accept(request, { body: silentAudio, headers: {} }, () => undefined)
    const ignore = context.schedule(pickUp, ringingMs)
    request.onCancel = ignore
  })
}

const everyMs = 1_000
const shortestTalkMs = 1_000
const longestTalkMs = 4_000

/**
 * Places a call every second to numbers 15550200 to 15550209, and hangs up after a while. The nodes of the platform take
 * turns; calls through each come from a number of their own.
 */
export function placeCalls(
  client: UserAgent,
  nodes: readonly { readonly sipPort: number }[],
  context: CommandContext,
): () => void {
  let calls = 0
  const conversations = new Set<() => void>()
  const talk = (end: UacEnd) => {
    if (end.kind !== 'answered') return
    const hangUp = () => {
      conversations.delete(hangUp)
      cancel()
      if (end.dialog.isConnected) end.dialog.bye({})
    }
    const talkMs = shortestTalkMs + context.random() * (longestTalkMs - shortestTalkMs)
    const cancel = context.schedule(hangUp, talkMs)
    conversations.add(hangUp)
  }
  const place = () => {
    const turn = calls % nodes.length
    const uri = `sip:1555020${calls % 10}@127.0.0.1:${nodes[turn]?.sipPort ?? 5060}`
    const headers = { From: `<sip:${callerNumber(turn)}@localhost>` }
    calls += 1
    client.invite(
      { uri, nextHop: undefined, headers, body: silentAudio, credentials: undefined },
      { onSent: () => undefined, onProvisional: () => undefined, onEnd: talk },
    )
    cancelNext = context.schedule(place, everyMs)
  }
  let cancelNext = context.schedule(place, 0)
  return () => {
    cancelNext()
    for (const hangUp of conversations) hangUp()
  }
}

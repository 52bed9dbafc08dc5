/** The caller of the demo. */
import { silentAudio } from '../../endpoint.ts'
import type { UacEnd, UserAgent } from '../../call/user-agent/user-agent.ts'
import type { CommandContext } from '../command.ts'
import { callerNumber } from './demo-data.ts'

const everyMs = 1_000
const shortestTalkMs = 1_000
const longestTalkMs = 4_000

/**
 * Places a call every second to numbers 15550200 to 15550209, and hangs up after a while. The
 * instances take turns; calls through each come from a number of their own.
 */
export function placeCalls(
  client: UserAgent,
  instances: readonly { readonly sipPort: number }[],
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
    const turn = calls % instances.length
    const uri = `sip:1555020${calls % 10}@127.0.0.1:${instances[turn]?.sipPort ?? 5060}`
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

/** Calls of the incidents, placed and ended one by one. */
import type { UserAgent } from '../../../call/user-agent/user-agent.ts'
import type { World } from '../../command.ts'
import { silentAudio } from '../silent-audio.ts'

export interface IncidentCall {
  readonly client: UserAgent
  readonly from: string
  readonly to: string
  /** How long it lasts when it is answered. */
  readonly talkMs: number
}

/** A refusal takes at most as long as a call is tried. */
const MAX_SETUP_MS = 40_000

/** Resolves when the call is over, however it ends. */
export function dial(
  { client, from, to, talkMs }: IncidentCall,
  sipPort: number,
  { schedule }: Pick<World, 'schedule'>,
): Promise<void> {
  return new Promise((resolve) => {
    const giveUp = schedule(resolve, MAX_SETUP_MS)
    const over = (): void => {
      giveUp()
      resolve()
    }
    client.invite(
      {
        uri: `sip:${to}@127.0.0.1:${sipPort}`,
        nextHop: undefined,
        body: silentAudio,
        headers: { From: `<sip:${from}@localhost>` },
        credentials: undefined,
      },
      {
        onSent: () => undefined,
        onProvisional: () => undefined,
        onEnd: (end) => {
          if (end.kind !== 'answered') return over()
          schedule(() => {
            if (end.dialog.isConnected) end.dialog.bye({})
            over()
          }, talkMs)
        },
      },
    )
  })
}

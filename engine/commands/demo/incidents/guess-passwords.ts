/** REGISTERs with wrong passwords, from the addresses of strangers. */
import type { UserAgent } from '../../../call/user-agent/user-agent.ts'
import { registerThrough } from '../../../call/user-agent/register.ts'
import type { World } from '../../command.ts'
import { GUESSED_EXTENSION, OFFICE_DOMAIN } from './incident-data.ts'

/** From each address: fewer than the guard bans for. */
const GUESSES = 12

/** Resolves when all are answered. */
export async function guessPasswords(
  strangers: readonly UserAgent[],
  sipPort: number,
  { schedule, newUuid }: Pick<World, 'schedule' | 'newUuid'>,
): Promise<void> {
  await Promise.all(
    strangers.map(async (stranger) => {
      const send = registerThrough(stranger, schedule)
      const callId = newUuid()
      for (let guess = 1; guess <= GUESSES; guess += 1)
        await send({
          registrar: `sip:127.0.0.1:${sipPort};transport=udp`,
          username: GUESSED_EXTENSION,
          password: `${GUESSED_EXTENSION}${guess}`,
          realm: null,
          domain: OFFICE_DOMAIN,
          expiresSeconds: 60,
          callId,
          cseq: guess,
        })
    }),
  )
}

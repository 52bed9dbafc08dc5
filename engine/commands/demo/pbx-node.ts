import type { Log } from '../../../schema/contracts/log.ts'
import { respond } from '../../call/sip/answers.ts'
import type { UserAgent } from '../../call/user-agent/user-agent.ts'
import type { World } from '../command.ts'
import { type Endpoint, startEndpoint } from './endpoint.ts'
import { silentAudio } from './silent-audio.ts'

const ringingMs = 300

/** A backend PBX node that rings and answers; numbers that end in 9 are busy. */
export const startPbxNode = (world: World, log: Log, host?: string): Promise<Endpoint> =>
  startEndpoint(world, log, (client) => answerCalls(client, world), host)

function answerCalls(client: UserAgent, world: World): void {
  client.handle('OPTIONS', (_request, answer) => respond(answer, 200))
  client.handle('INVITE', (request, answer) => {
    if (/^sip:[^@]*9@/.test(request.uri)) {
      respond(answer, 486)
      return
    }
    respond(answer, 180)
    const pickUp = () => client.accept(request, { body: silentAudio, headers: {} }, () => undefined)
    const ignore = world.schedule(pickUp, ringingMs)
    request.onCancel = ignore
  })
}

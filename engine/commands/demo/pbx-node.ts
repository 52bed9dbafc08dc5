import { respond, type SrfClient } from '../../call/sip/srf-client.ts'
import type { Log } from '../../logger.ts'
import type { World } from '../command.ts'
import { type Endpoint, startEndpoint } from './endpoint.ts'
import { silentAudio } from './silent-audio.ts'

const ringingMs = 300

/** A backend PBX node that rings and answers; numbers that end in 9 are busy. */
export const startPbxNode = (world: World, log: Log): Promise<Endpoint> =>
  startEndpoint(world, log, answerCalls)

function answerCalls(client: SrfClient): void {
  client.handle('OPTIONS', (_request, answer) => respond(answer, 200))
  client.handle('INVITE', (request, answer) => {
    if (/^sip:[^@]*9@/.test(request.uri)) {
      respond(answer, 486)
      return
    }
    let isCancelled = false
    request.on('cancel', () => {
      isCancelled = true
    })
    respond(answer, 180)
    setTimeout(() => {
      if (isCancelled) return
      client.accept(request, answer, { localSdp: silentAudio, headers: {} }, () => undefined)
    }, ringingMs)
  })
}

/** The quality of calls, from all that tells it: a relay that has measured it, else the phones themselves. */
import type { Quality } from '../../../schema/contracts/charging.ts'
import type { LiveCall } from '../../call/call-machine/state.ts'
import type { CallMedia, ClosedSession } from '../call-media.ts'
import { MediaTimeout, type MediaTimeoutDeps } from './media-timeout.ts'
import { PhoneReports, type PhoneReportsDeps } from './phone-reports.ts'
import { type PublishDeps, QualityPublications } from './publish.ts'
import { qualityOf, type Tags } from './statistics.ts'
import type { CallQuality, StreamQuality } from '../../../schema/contracts/field-values.ts'

/** What is asked at each call. */
export interface QualityBooks extends Pick<PublishDeps, 'routing' | 'registrar'> {
  readonly calls: PublishDeps['calls'] & PhoneReportsDeps['calls'] & MediaTimeoutDeps['calls']
  /** Undefined: there are no relays. */
  readonly media: { readonly calls: CallMedia } | undefined
}

interface QualityDeps
  extends
    Pick<PublishDeps, 'onUnknownSource'>,
    Pick<MediaTimeoutDeps, 'deadlines' | 'now' | 'wallNow' | 'onLost'> {
  readonly config: {
    readonly mediaTimeoutMs: number
    readonly mediaTimeoutCharge: MediaTimeoutDeps['charge']
  }
}

/** What call control asks and tells. */
export function createQuality(books: QualityBooks, deps: QualityDeps) {
  const { calls } = books
  const media = books.media?.calls
  const { mediaTimeoutMs: timeoutMs, mediaTimeoutCharge: charge } = deps.config
  if (media && timeoutMs > 0) new MediaTimeout({ ...deps, calls, media, timeoutMs, charge }).start()
  const reports = new PhoneReports({ ...deps, calls })
  return {
    qualityOf: (call: LiveCall): Quality | undefined => {
      const measured = media && measuredQuality(call, media)
      const reported = reports.of(call)
      if (measured === undefined || reported === undefined) return measured ?? reported
      return Promise.all([measured, reported]).then(merged)
    },
    onByeHeaders: reports.noteBye,
    publications: new QualityPublications({ ...books, ...deps, reports }),
  }
}

function merged([measured, reported]: readonly [CallQuality | undefined, CallQuality | undefined]):
  CallQuality | undefined {
  if (measured === undefined || reported === undefined) return measured ?? reported
  const { caller, callee } = measured
  return { caller: better(caller, reported.caller), callee: better(callee, reported.callee) }
}

/** A relay that was told nothing by RTCP knows the packets alone. */
const better = (measured: StreamQuality | null, reported: StreamQuality | null) =>
  measured !== null && measured.mos !== null ? measured : (reported ?? measured)

/** Undefined: it was not answered, or no relay knows of it, so that nothing is waited for. */
export function measuredQuality(
  { answeredAt, start, legs }: LiveCall,
  media: Pick<CallMedia, 'closedSessions'>,
): Quality | undefined {
  if (answeredAt === null) return undefined
  const { caller, callee } = legs
  return media
    .closedSessions(start.callUuid)
    ?.then((sessions) => combined(sessions, { caller, callee }))
}

/** After a transfer, or another relay, each party is judged by the session in which most was heard from it. */
function combined(
  sessions: readonly ClosedSession[],
  legs: LiveCall['legs'],
): CallQuality | undefined {
  const qualities = sessions.flatMap(({ session, values }) => {
    const quality = values && qualityOf(values, tagsOf(session.legs, legs))
    return quality === undefined ? [] : [quality]
  })
  if (qualities.length === 0) return undefined
  return {
    caller: longest(qualities.map(({ caller }) => caller)),
    callee: longest(qualities.map(({ callee }) => callee)),
  }
}

/** One leg of a session may belong to another call. */
function tagsOf([first, second]: readonly [string, string], legs: LiveCall['legs']): Tags {
  const isTurned = first === legs.callee || second === legs.caller
  return isTurned ? { caller: second, callee: first } : { caller: first, callee: second }
}

const longest = (streams: readonly (StreamQuality | null)[]): StreamQuality | null =>
  streams.reduce((most, each) => ((each?.packets ?? 0) > (most?.packets ?? 0) ? each : most), null)

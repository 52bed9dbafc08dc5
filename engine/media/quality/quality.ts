/** The quality of calls, from all that tells it: a relay that has measured it, else the phones themselves. */
import type { Quality } from '../../../schema/contracts/charging.ts'
import type { CallQuality, StreamQuality } from '../../../schema/contracts/field-values.ts'
import type { LiveCall } from '../../call/call-machine/live.ts'
import type { CallMedia } from '../call-media.ts'
import { measuredQuality } from './call-quality.ts'
import { MediaTimeout, type MediaTimeoutDeps } from './media-timeout.ts'
import { PhoneReports, type PhoneReportsDeps } from './phone-reports.ts'
import { QualityPublications, type PublishDeps } from './publish.ts'

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

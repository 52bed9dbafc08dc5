/** Connects recording to the engine: its settings, its start, and the events of media and calls. */
import type { CallRecord } from '../../../schema/contracts/call-record.ts'
import type { Schedule } from '../../../schema/clock.ts'
import type { RecordingError } from '../../../schema/contracts/field-values.ts'
import type { Log } from '../../../schema/contracts/log.ts'
import type { Store } from '../../../schema/storage/store.ts'
import type { ActiveCalls } from '../../call/active-calls.ts'
import type { LiveCall } from '../../call/call-machine/state.ts'
import { isOfSupervisor } from '../../call/inbound/incoming-invite.ts'
import type { CallMedia } from '../call-media.ts'
import { Finisher, FinishedRecordings } from './finisher.ts'
import { Recorder } from './recorder.ts'
import type { Relays } from '../relay/relays.ts'
import type { EngineHappening, EventSink } from '../../../schema/contracts/engine.ts'
import type { RecordingsPort, CallRecording } from '../../../schema/contracts/calls.ts'
import { ConversionThread } from './conversion-thread.ts'
import { UnfinishedRecordings } from './unfinished-recordings.ts'

/** The settings of recording. */
export interface RecordingSettings {
  /** Finished files. */
  readonly folder: string
  /** rtpengine's `--recording-dir`, as this process sees it. */
  readonly spool: string
  readonly hasTone: boolean
  /** A call that is always recorded does not take place without a relay. */
  readonly isRequired: boolean
}

export interface RecordingsDeps {
  readonly settings: RecordingSettings
  readonly store: Store
  readonly webhooks: EventSink
  readonly media: CallMedia
  readonly relays: Pick<Relays, 'byName'>
  readonly calls: Pick<ActiveCalls, 'find' | 'list' | 'call' | 'leg'>
  readonly extensionAt: ExtensionAt
  /** Whether a capture has a name that we give to sessions. */
  readonly isOurs: (name: string) => boolean
  /** Milliseconds UTC. */
  readonly now: () => number
  readonly schedule: Schedule
  readonly onEvent: (event: EngineHappening) => void
  readonly log: Log
}

/** The parts that tell of calls and media, and that hear of recordings. */
interface RecordingSources {
  readonly media: { readonly calls: CallMedia; isOurs(name: string): boolean } | undefined
  readonly relays: Pick<Relays, 'byName'> | undefined
  readonly calls: RecordingsDeps['calls']
  readonly registrar: { readonly extensionAt: ExtensionAt }
  readonly events: { add(event: EngineHappening): void }
}

/** Undefined without relays, or without places for files. */
export function createRecordings(
  { media, relays, calls, registrar, events }: RecordingSources,
  deps: Pick<RecordingsDeps, 'store' | 'schedule' | 'log'> & {
    readonly config: { readonly recording: RecordingSettings | undefined }
    /** Absent: there are none. */
    readonly webhooks?: EventSink
    /** Milliseconds UTC. */
    readonly wallNow: () => number
  },
): Recordings | undefined {
  const settings = deps.config.recording
  if (settings === undefined || media === undefined || relays === undefined) return undefined
  return new Recordings({
    ...deps,
    settings,
    relays,
    calls,
    now: deps.wallNow,
    media: media.calls,
    isOurs: (name) => media.isOurs(name),
    webhooks: deps.webhooks ?? {
      wants: () => false,
      writeAll: () => Promise.resolve(),
    },
    extensionAt: (domain, extension) => registrar.extensionAt(domain, extension),
    onEvent: (event) => events.add(event),
  })
}

const missed = {
  not_relayed: 'its media went through no relay',
  relay_failed: 'the relay did not record it',
} as const satisfies Partial<Record<RecordingError, string>>

/** How often the record of a call is searched, and the time between. */
const NOTE_TRIES = 60
const NOTE_MS = 1_000

export class Recordings implements RecordingsPort {
  readonly isAvailable = true
  readonly #recorder: Recorder
  readonly #finisher: Finisher
  readonly #deps: RecordingsDeps
  /** Answered calls that were to be recorded from their beginning, and were not. */
  #missed = 0
  /** Live calls that are to be recorded from their beginning, and why one of them would not be. */
  readonly #wanted = new Map<string, keyof typeof missed>()
  readonly #store: FinishedRecordings

  /** @throws when the folder cannot be written. */
  constructor(deps: RecordingsDeps) {
    const { settings, media, calls, extensionAt, log } = deps
    const unfinished = new UnfinishedRecordings(settings.folder)
    const store = new FinishedRecordings(deps.store, deps.webhooks)
    this.#deps = deps
    this.#store = store
    this.#finisher = new Finisher({
      ...deps,
      ...settings,
      store,
      unfinished,
      converter: new ConversionThread(),
    })
    this.#recorder = new Recorder({
      ...deps,
      ...settings,
      unfinished,
      finish: (recording) => this.#finisher.add(recording),
      endOf: (callUuid) => store.endOf(callUuid),
      calls: {
        find: (callUuid) => calls.find(callUuid),
        list: () => calls.list(),
        wishOf: (callUuid) => {
          const call = calls.call(callUuid)
          return call ? recordingWish(call, extensionAt) : 'never'
        },
        isRecordedElsewhere: (callUuid) => calls.call(callUuid)?.start.isRecordedElsewhere === true,
        sideOf: (callUuid, legId) => {
          const leg = calls.leg(legId)
          return leg?.callUuid === callUuid ? leg.side : undefined
        },
      },
    })
    media.observe({
      connected: (session) => {
        this.#noteRelay(session.callUuids)
        this.#recorder.connected(session)
      },
      closed: (session) => {
        this.#recorder.closed(session).catch((error: unknown) => {
          log('error', 'a recording could not be ended', { error: String(error) })
        })
      },
    })
  }

  /** To be called when the calls of the last run are restored. */
  async resume(): Promise<void> {
    const { calls, media } = this.#deps
    for (const { callUuid } of calls.list()) {
      this.mayRecord(callUuid)
      if (media.sessionsOf(callUuid).length > 0) this.#noteRelay([callUuid])
    }
    try {
      await this.#recorder.resume()
      await this.#finisher.removeOrphans()
    } catch (error) {
      this.#deps.log('error', 'recordings of the previous process are left for the next start', {
        error: String(error),
      })
    }
  }

  ended({ callUuid, answeredAt, endedAt, tenantId }: CallRecord): void {
    const isCaptured = this.#recorder.ended(callUuid, endedAt, tenantId)
    const error = this.#wanted.get(callUuid)
    this.#wanted.delete(callUuid)
    if (error === undefined || isCaptured || answeredAt === null) return
    const { onEvent, log } = this.#deps
    const reason = missed[error]
    this.#missed += 1
    log('error', 'a call that is always recorded was not recorded', { callUuid, reason })
    void this.#noteError(callUuid, error)
    onEvent({ type: 'recording.failed', tenantId, callUuid, reason })
  }

  /** The record of an ended call is stored soon, or later if the database is unavailable. */
  async #noteError(callUuid: string, error: RecordingError, tries = 0): Promise<void> {
    const { log, schedule } = this.#deps
    try {
      if (await this.#store.fail(callUuid, error)) return
      if (tries < NOTE_TRIES)
        return void schedule(() => void this.#noteError(callUuid, error, tries + 1), NOTE_MS)
      log('warn', 'the failed recording of a call could not be noted: the call has no record', {
        callUuid,
      })
    } catch (problem) {
      log('error', 'the failed recording of a call could not be noted in its record', {
        callUuid,
        error: String(problem),
      })
    }
  }

  #noteRelay(callUuids: readonly string[]): void {
    for (const callUuid of callUuids)
      if (this.#wanted.has(callUuid)) this.#wanted.set(callUuid, 'relay_failed')
  }

  /** Whether the media of the call has to go through a relay. Also called before the answer. */
  mayRecord(callUuid: string): boolean {
    const call = this.#deps.calls.call(callUuid)
    if (call === undefined) return false
    const wish = recordingWish(call, this.#deps.extensionAt)
    if (wish !== 'always' || call.end) this.#wanted.delete(callUuid)
    else if (!this.#wanted.has(callUuid)) this.#wanted.set(callUuid, 'not_relayed')
    return needsRelay(wish)
  }

  /** Whether the call is refused without a relay. */
  mustRecord(callUuid: string): boolean {
    const { settings, calls, extensionAt } = this.#deps
    const call = settings.isRequired ? calls.call(callUuid) : undefined
    return call !== undefined && !call.isEmergency && recordingWish(call, extensionAt) === 'always'
  }

  isRecording(callUuid: string): boolean {
    return this.#recorder.isRecording(callUuid)
  }

  readonly control: RecordingsPort['control'] = (callUuid, action) =>
    this.#recorder.control(callUuid, action)

  telemetry(): Readonly<Record<string, number>> {
    const { made, failed, waiting } = this.#finisher.totals
    return {
      recordings_active: this.#recorder.size,
      recordings_waiting: waiting,
      recordings_made_total: made,
      recordings_failed_total: failed,
      recordings_missed_total: this.#missed,
    }
  }

  /** The next start finishes the rest. */
  stop(): Promise<void> {
    return this.#finisher.stop()
  }
}

/** The port of an engine without relays, or without recording settings. */
export const noRecordings: RecordingsPort = {
  isAvailable: false,
  isRecording: () => false,
  control: () => Promise.resolve({ kind: 'recording_unavailable' }),
}

/** Looks up an extension in the registrar. */
export type ExtensionAt = (
  domain: string,
  extension: string,
) => { readonly callRecording?: CallRecording } | undefined

/**
 * The recording setting of a call, known when its destination is dialled. The call of a supervisor
 * is never recorded: the supervised parties may have chosen not to be recorded. A call that another
 * instance records is not recorded twice.
 */
export function recordingWish(
  call: Pick<LiveCall, 'start' | 'origin' | 'destination' | 'dialing' | 'isToBeRecorded'>,
  extensionAt: ExtensionAt,
): CallRecording {
  const { start, origin, destination, dialing } = call
  if (isOfSupervisor(start) || start.isRecordedElsewhere === true) return 'never'
  // A hook has said it, whatever the rules of the extensions are.
  if (call.isToBeRecorded !== undefined) return call.isToBeRecorded ? 'always' : 'never'
  const called = destination ?? dialing?.current
  const caller =
    origin?.kind === 'extension' ? extensionAt(origin.domain, origin.extension) : undefined
  const callee = called?.kind === 'extension' ? extensionOf(called.uri, extensionAt) : undefined
  return recordingOf([caller?.callRecording, callee?.callRecording])
}

/** `sip:<extension>@<domain>`. */
function extensionOf(uri: string, extensionAt: ExtensionAt) {
  const end = uri.lastIndexOf('@')
  return extensionAt(uri.slice(end + 1), uri.slice('sip:'.length, end))
}

/**
 * The strongest setting counts: an extension decides about its own calls, whatever the other party
 * has set. A call without extensions is never recorded.
 */
export function recordingOf(wishes: readonly (CallRecording | undefined)[]): CallRecording {
  if (wishes.includes('always')) return 'always'
  return wishes.includes('on_demand') ? 'on_demand' : 'never'
}

/**
 * Only what goes through a relay can be recorded, and a call cannot be moved there when it is
 * answered.
 */
export const needsRelay = (recording: CallRecording): boolean => recording !== 'never'

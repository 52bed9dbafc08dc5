/**
 * Starts and stops recordings at the relay during calls. A failure is logged and costs the
 * recording: no call waits for it or ends by it.
 */
import type { Schedule } from '../../../schema/clock.ts'
import type {
  ActiveCall,
  CallRecording,
  RecordingAction,
  RecordingResult,
} from '../../../schema/contracts/calls.ts'
import type { Log } from '../../../schema/contracts/log.ts'
import type { CallMedia, MediaSession } from '../call-media.ts'
import type { RelayEndpoint } from './audio/convert.ts'
import { dictionaryOf, listOf } from '../relay/bencode.ts'
import type { NgAnswer, NgValue, Relays } from '../relay/relays.ts'
import type { EngineHappening } from '../../../schema/contracts/engine.ts'
import type { UnfinishedRecordings } from './unfinished-recordings.ts'
import { type RecordedTrack, type UnfinishedRecording } from './unfinished-recordings.ts'

/** The live calls, as the recorder uses them. */
interface RecordedCalls {
  find(callUuid: string): ActiveCall | undefined
  list(): readonly ActiveCall[]
  /** The recording setting of the extensions of its parties. */
  wishOf(callUuid: string): CallRecording
  /**
   * The call connects another instance to a call of this instance, and that instance records the
   * audio.
   */
  isRecordedElsewhere(callUuid: string): boolean
  /** Undefined: no leg of this call. */
  sideOf(callUuid: string, legId: string): 'caller' | 'callee' | undefined
}

interface RecorderDeps {
  readonly media: Pick<CallMedia, 'sessionsOf'>
  readonly relays: Pick<Relays, 'byName'>
  readonly calls: RecordedCalls
  readonly unfinished: UnfinishedRecordings
  /** The call is over, and its captures are whole. */
  readonly finish: (recording: UnfinishedRecording) => void
  /** The end time in the record of an ended call. Undefined: there is no record. */
  readonly endOf: (callUuid: string) => Promise<number | undefined>
  /** Both parties hear a tone when recording starts. */
  readonly hasTone: boolean
  /** Milliseconds UTC. */
  readonly now: () => number
  readonly schedule: Schedule
  readonly onEvent: (event: EngineHappening) => void
  readonly log: Log
}

interface Recording {
  readonly callUuid: string
  tenantId: number | null
  startedAt: number
  /** When it was stopped last. */
  stoppedAt: number | null
  /** The recording is switched on. */
  isOn: boolean
  isOver: boolean
  readonly sessions: Map<string, MediaSession>
  /** Starts under way, by session. */
  readonly starting: Map<string, Promise<boolean>>
  readonly tracks: RecordedTrack[]
  /** Noted, and not captured yet. */
  readonly intended: RecordedTrack[]
  /** Sessions that a stop has reached that did not reach all. */
  readonly halted: Set<string>
}

/** How long a session may outlive its call. */
const LAST_SESSION_MS = 5_000

export class Recorder {
  readonly #deps: RecorderDeps
  readonly #recordings = new Map<string, Recording>()
  readonly #bySession = new Map<string, Recording>()
  readonly #tone = beepWav()
  /** Live calls that are recorded, also as part of another recording, or by another instance. */
  readonly #captured = new Set<string>()

  constructor(deps: RecorderDeps) {
    this.#deps = deps
  }

  get size(): number {
    return [...this.#recordings.values()].filter(isCapturing).length
  }

  isRecording(callUuid: string): boolean {
    const recording = this.#recordings.get(callUuid)
    return recording !== undefined && isCapturing(recording)
  }

  /** Continues the recordings of the last process, and finishes those of ended calls. */
  async resume(): Promise<void> {
    const { unfinished, calls, media } = this.#deps
    for (const note of await unfinished.all()) {
      if (this.#recordings.has(note.callUuid)) continue
      if (calls.find(note.callUuid)) {
        this.#recordings.set(note.callUuid, adopted(note))
        this.#captured.add(note.callUuid)
      } else await this.#finishOrphan(note)
    }
    for (const { callUuid, answeredAt } of calls.list())
      if (answeredAt !== null)
        for (const session of media.sessionsOf(callUuid)) this.connected(session)
  }

  /** Both parties of an answered call have agreed on media that goes through a relay. */
  connected(session: MediaSession): void {
    const { callUuids } = session
    const { calls } = this.#deps
    if (callUuids.some((uuid) => calls.isRecordedElsewhere(uuid))) {
      for (const uuid of callUuids) if (calls.find(uuid)) this.#captured.add(uuid)
      return
    }
    const callUuid =
      callUuids.find((uuid) => this.#recordings.has(uuid)) ??
      callUuids.find((uuid) => calls.wishOf(uuid) === 'always')
    if (callUuid === undefined) return
    const recording = this.#recordings.get(callUuid) ?? this.#begin(callUuid)
    if (recording.sessions.has(session.id)) return
    this.#join(recording, session)
    // The relay may still record a session of the last process.
    if (recording.isOn && !isRecordedIn(recording, session)) void this.#start(recording, session)
  }

  /** The relay has forgotten the session. */
  async closed(session: MediaSession): Promise<void> {
    const recording = this.#bySession.get(session.id)
    if (recording === undefined) return
    await recording.starting.get(session.id)
    // Completes the files, unless the relay has already forgotten the session.
    if (isRecordedIn(recording, session)) await this.#request(session, 'stop recording')
    this.#bySession.delete(session.id)
    recording.sessions.delete(session.id)
    if (recording.isOver && recording.sessions.size === 0) this.#finish(recording)
  }

  /** The call is over, and its record stored. Returns whether anything of it is recorded. */
  ended(callUuid: string, endedAt: number, tenantId: number | null): boolean {
    const recording = this.#recordings.get(callUuid)
    if (recording) this.#end(recording, endedAt, tenantId)
    return this.#captured.delete(callUuid)
  }

  #end(recording: Recording, endedAt: number, tenantId: number | null): void {
    this.#emitStopped(recording)
    recording.isOver = true
    recording.tenantId = tenantId
    if (recording.isOn) recording.stoppedAt = endedAt
    if (recording.sessions.size === 0) return this.#finish(recording)
    this.#deps.schedule(() => {
      for (const session of recording.sessions.values()) void this.closed(session)
    }, LAST_SESSION_MS)
  }

  async control(callUuid: string, action: RecordingAction): Promise<RecordingResult> {
    const call = this.#deps.calls.find(callUuid)
    if (call === undefined) return { kind: 'unknown_call' }
    if (call.answeredAt === null) return { kind: 'call_not_answered' }
    return action === 'start' ? this.#startCall(callUuid) : this.#stopCall(callUuid)
  }

  async #startCall(callUuid: string): Promise<RecordingResult> {
    const { calls, media } = this.#deps
    const known = this.#recordings.get(callUuid)
    if (known && isCapturing(known) && known.halted.size === 0) return { kind: 'recording' }
    if (!known && calls.wishOf(callUuid) === 'never') return { kind: 'recording_not_allowed' }
    const sessions = media.sessionsOf(callUuid)
    if (sessions.length === 0) return { kind: 'call_not_anchored' }
    const recording = known ?? this.#begin(callUuid)
    const { isOn, stoppedAt } = recording
    recording.isOn = true
    recording.stoppedAt = null
    for (const session of sessions) this.#join(recording, session)
    const started = await Promise.all(sessions.map((each) => this.#start(recording, each)))
    if (started.includes(true)) return { kind: 'recording' }
    if (!isOn) Object.assign(recording, { isOn, stoppedAt })
    await this.#note(recording)
    return { kind: 'relay_failed' }
  }

  async #stopCall(callUuid: string): Promise<RecordingResult> {
    const recording = this.#recordings.get(callUuid)
    if (recording === undefined || !recording.isOn) return { kind: 'stopped' }
    const { sessions, starting, halted } = recording
    // A relay that takes it after the stop would go on.
    await Promise.all(starting.values())
    await Promise.all([...sessions.values()].map((each) => this.#halt(recording, each)))
    // The rest is captured still.
    if ([...sessions.keys()].some((id) => !halted.has(id))) return { kind: 'relay_failed' }
    this.#emitStopped(recording)
    halted.clear()
    recording.isOn = false
    recording.stoppedAt = this.#deps.now()
    await this.#note(recording)
    return { kind: 'stopped' }
  }

  /** A relay that refuses does not know the session any more. */
  async #halt({ halted }: Recording, session: MediaSession): Promise<void> {
    const result = await this.#request(session, 'stop recording')
    if (result !== 'timeout') halted.add(session.id)
  }

  #begin(callUuid: string): Recording {
    const tenantId = this.#deps.calls.find(callUuid)?.tenantId ?? null
    const recording: Recording = {
      callUuid,
      tenantId,
      startedAt: this.#deps.now(),
      stoppedAt: null,
      isOn: true,
      isOver: false,
      tracks: [],
      ...nothingUnderWay(),
    }
    this.#recordings.set(callUuid, recording)
    return recording
  }

  #join(recording: Recording, session: MediaSession): void {
    recording.sessions.set(session.id, session)
    this.#bySession.set(session.id, recording)
  }

  /** Once, for all who ask while it is under way. */
  #start(recording: Recording, session: MediaSession): Promise<boolean> {
    const underWay = recording.starting.get(session.id)
    if (underWay) return underWay
    const started = this.#started(recording, session).finally(() =>
      recording.starting.delete(session.id),
    )
    recording.starting.set(session.id, started)
    return started
  }

  /**
   * False: the relay does not record. The track is noted before: a crash leaves no capture without
   * a note.
   */
  async #started(recording: Recording, session: MediaSession): Promise<boolean> {
    const { callUuid, tracks, intended, halted } = recording
    if (!isRecordedIn(recording, session)) {
      const track = await this.#trackOf(callUuid, session)
      if (track) intended.push(track)
      if (tracks.length === 0) recording.startedAt = track?.startedAt ?? recording.startedAt
    }
    const isKnown = noteOf(recording).tracks.some(({ sessionId }) => sessionId === session.id)
    if (isKnown) await this.#note(recording)
    const result = isKnown ? await this.#request(session, 'start recording') : 'error'
    const at = intended.findIndex(({ sessionId }) => sessionId === session.id)
    const added = at < 0 ? [] : intended.splice(at, 1)
    if (result === 'ok') {
      tracks.push(...added)
      halted.delete(session.id)
      for (const each of session.callUuids)
        if (this.#deps.calls.find(each)) this.#captured.add(each)
      this.#emit('recording.started', recording)
      if (this.#deps.hasTone) void this.#playTone(session)
    } else {
      const { relay } = session
      this.#deps.log(
        'warn',
        'a call is not recorded: its media relay did not start the recording',
        {
          callUuid,
          relay: relay.name,
        },
      )
      // The relay may have started although its answer was lost.
      if (result === 'timeout') await this.#request(session, 'stop recording')
    }
    await this.#note(recording)
    return result === 'ok'
  }

  /**
   * The relay endpoints to which each party sends its media. Undefined: the relay has not answered.
   */
  async #trackOf(callUuid: string, session: MediaSession): Promise<RecordedTrack | undefined> {
    const { id: sessionId, relay, legs } = session
    const answer = await relay.request({ command: 'query', 'call-id': sessionId })
    if (answer.kind !== 'ok') return undefined
    const tags = dictionaryOf(answer.values['tags'])
    const [first, second] = legs.map((legId) => endpointsOf(tags[legId])) as [
      readonly RelayEndpoint[],
      readonly RelayEndpoint[],
    ]
    const isCalleeFirst =
      this.#deps.calls.sideOf(callUuid, legs[0]) === 'callee' ||
      this.#deps.calls.sideOf(callUuid, legs[1]) === 'caller'
    const [caller, callee] = isCalleeFirst ? [second, first] : [first, second]
    return { sessionId, relay: relay.name, startedAt: this.#deps.now(), caller, callee }
  }

  async #playTone({ id, relay, legs }: MediaSession): Promise<void> {
    const play = { command: 'play media', 'call-id': id, blob: this.#tone }
    const answers = await Promise.all(
      legs.map((legId) => relay.request({ ...play, 'from-tag': legId })),
    )
    if (answers.some(({ kind }) => kind !== 'ok'))
      this.#deps.log('warn', 'a party has not heard the tone of a recording', { session: id })
  }

  async #request(session: MediaSession, command: string): Promise<NgAnswer['kind']> {
    const { id, relay, legs } = session
    const { kind } = await relay.request({ command, 'call-id': id, 'from-tag': legs[0] })
    return kind
  }

  #finish(recording: Recording): void {
    const { callUuid, tracks } = recording
    if (!this.#recordings.delete(callUuid) || tracks.length === 0) return
    const note = noteOf(recording)
    // If this write fails, the older note has the tracks, and the file ends with the last audio.
    void this.#write(note).then(() => this.#deps.finish(note))
  }

  /** The relay may go on capturing a call that did not outlive the last process. */
  async #finishOrphan(note: UnfinishedRecording): Promise<void> {
    const { relays, endOf, finish } = this.#deps
    for (const { relay, sessionId } of note.tracks)
      await relays.byName(relay)?.request({ command: 'stop recording', 'call-id': sessionId })
    const endedAt = note.endedAt ?? (await endOf(note.callUuid)) ?? null
    finish({ ...note, isOn: false, endedAt })
  }

  #emitStopped(recording: Recording): void {
    if (isCapturing(recording)) this.#emit('recording.stopped', recording)
  }

  #emit(type: 'recording.started' | 'recording.stopped', { callUuid }: Recording): void {
    const call = this.#deps.calls.find(callUuid)
    if (call) this.#deps.onEvent({ type, tenantId: call.tenantId, call })
  }

  /** Nothing is noted of what was to be captured, and was not. */
  async #note(recording: Recording): Promise<void> {
    const note = noteOf(recording)
    if (note.tracks.length > 0) return this.#write(note)
    await this.#deps.unfinished.remove(recording.callUuid).catch(() => undefined)
  }

  async #write(note: UnfinishedRecording): Promise<void> {
    const { unfinished, log } = this.#deps
    await unfinished.write(note).catch((error: unknown) => {
      const { callUuid } = note
      log('error', 'a recording would not outlive a crash', { callUuid, error: String(error) })
    })
  }
}

/** The relay captures it. */
const isCapturing = ({ isOn, isOver, tracks }: Recording): boolean =>
  isOn && !isOver && tracks.length > 0

const isRecordedIn = ({ tracks }: Recording, { id }: MediaSession): boolean =>
  tracks.some(({ sessionId }) => sessionId === id)

const noteOf = ({
  callUuid,
  tenantId,
  startedAt,
  stoppedAt,
  isOn,
  isOver,
  tracks,
  intended,
}: Recording): UnfinishedRecording => ({
  callUuid,
  tenantId,
  startedAt,
  tracks: [...tracks, ...intended.map((track) => ({ ...track, isIntended: true }))],
  endedAt: stoppedAt,
  isOn: isOn && !isOver,
})

/** Its sessions are added by `connected`. */
const adopted = (note: UnfinishedRecording): Recording => ({
  callUuid: note.callUuid,
  tenantId: note.tenantId,
  startedAt: note.startedAt,
  stoppedAt: note.endedAt,
  isOn: note.isOn,
  isOver: false,
  ...nothingUnderWay(),
  // The relay may have started the other tracks: it is asked again.
  tracks: note.tracks.filter(({ isIntended }) => isIntended !== true),
})

const nothingUnderWay = (): Pick<Recording, 'sessions' | 'starting' | 'intended' | 'halted'> => ({
  sessions: new Map(),
  starting: new Map(),
  intended: [],
  halted: new Set(),
})

/** The ports of a party's streams in the answer to `query`. */
function endpointsOf(tag: NgValue | undefined): readonly RelayEndpoint[] {
  return listOf(dictionaryOf(tag)['medias']).flatMap((media) =>
    listOf(dictionaryOf(media)['streams']).flatMap((stream) => {
      const { 'local address': address, 'local port': port } = dictionaryOf(stream)
      return typeof address === 'string' && typeof port === 'number' ? [{ address, port }] : []
    }),
  )
}

/**
 * The recording tone for both parties: 0.2 s of 1400 Hz (ITU-T E.180 supplement 2), as a WAV.
 * Text of the ng protocol is UTF-8: with 7 bits per sample, and these lengths, each byte is one
 * character of ASCII.
 */

const RATE = 8_000
const SAMPLES = RATE / 5
const HERTZ = 1_400

const beepWav = (): string =>
  [
    'RIFF',
    long(36 + SAMPLES),
    'WAVE',
    'fmt ',
    long(16),
    short(1),
    short(1),
    long(RATE),
    long(RATE),
    short(1),
    short(8),
    'data',
    long(SAMPLES),
    ...Array.from({ length: SAMPLES }, (_, at) => character(sample(at))),
  ].join('')

const sample = (at: number): number =>
  0x50 + Math.round(0x2f * Math.sin((2 * Math.PI * HERTZ * at) / RATE))

const character = (byte: number): string => String.fromCharCode(byte & 0xff)

const short = (value: number): string => character(value) + character(value >> 8)

const long = (value: number): string => short(value & 0xffff) + short(value >>> 16)

import type { RelayEndpoint, Track } from './audio/convert.ts'
import { mkdirSync } from 'node:fs'
import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { recordingFile } from '../../../schema/rules/media.ts'

export interface RecordedTrack extends Track {
  /** `host:port` of the relay. */
  readonly relay: string
  /** The relay may not have begun yet. */
  readonly isIntended?: boolean
}

export interface UnfinishedRecording {
  readonly callUuid: string
  readonly tenantId: number | null
  /** Milliseconds UTC. */
  readonly startedAt: number
  /** Null: the call continues. */
  readonly endedAt: number | null
  /** False: it was stopped, and may be started again. */
  readonly isOn: boolean
  readonly tracks: readonly RecordedTrack[]
}

const FOLDER = '.unfinished'
const SUFFIX = '.json'

/**
 * Notes of unfinished recordings, one file for each call, so that the next process finishes them
 * after a crash. A note that cannot be written costs the recording, never the call.
 */
export class UnfinishedRecordings {
  readonly #folder: string
  /** The writes of one call, in order. */
  readonly #writing = new Map<string, Promise<void>>()

  /** @throws when the folder of recordings cannot be written. */
  constructor(recordings: string) {
    this.#folder = join(recordings, FOLDER)
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
  }

  write(recording: UnfinishedRecording): Promise<void> {
    const path = this.#pathOf(recording.callUuid)
    return this.#after(recording.callUuid, async () => {
      await writeFile(`${path}.tmp`, JSON.stringify(recording), { mode: 0o600 })
      await rename(`${path}.tmp`, path)
    })
  }

  remove(callUuid: string): Promise<void> {
    return this.#after(callUuid, () => rm(this.#pathOf(callUuid), { force: true }))
  }

  /** All readable notes. */
  async all(): Promise<readonly UnfinishedRecording[]> {
    const names = (await readdir(this.#folder)).filter((name) => name.endsWith(SUFFIX))
    const recordings: UnfinishedRecording[] = []
    for (const name of names) {
      const text = await readFile(join(this.#folder, name), 'utf8').catch(() => '')
      const recording = read(text)
      if (recording && `${recording.callUuid}${SUFFIX}` === name) recordings.push(recording)
    }
    return recordings
  }

  #pathOf(callUuid: string): string {
    if (recordingFile(callUuid) === undefined) throw new Error(`no uuid of a call: ${callUuid}`)
    return join(this.#folder, `${callUuid}${SUFFIX}`)
  }

  #after(callUuid: string, work: () => Promise<void>): Promise<void> {
    const before = this.#writing.get(callUuid) ?? Promise.resolve()
    const done = before.then(work, work)
    const forget = (): void => {
      if (this.#writing.get(callUuid) === done) this.#writing.delete(callUuid)
    }
    this.#writing.set(callUuid, done)
    done.then(forget, forget)
    return done
  }
}

/** Undefined: it is damaged, or of another version. */
function read(text: string): UnfinishedRecording | undefined {
  try {
    const note = JSON.parse(text) as Partial<UnfinishedRecording>
    const { callUuid, tenantId, startedAt, endedAt, isOn, tracks } = note
    if (typeof callUuid !== 'string' || recordingFile(callUuid) === undefined) return undefined
    if (!isTime(startedAt) || !(endedAt === null || isTime(endedAt))) return undefined
    if (!Array.isArray(tracks) || !tracks.every(isTrack)) return undefined
    const tenant = typeof tenantId === 'number' ? tenantId : null
    return { callUuid, tenantId: tenant, startedAt, endedAt, isOn: isOn === true, tracks }
  } catch {
    return undefined
  }
}

const isTime = (value: unknown): value is number => typeof value === 'number' && value > 0

function isTrack(value: unknown): value is RecordedTrack {
  const { sessionId, relay, startedAt, caller, callee } = Object(value) as Partial<RecordedTrack>
  return (
    typeof sessionId === 'string' &&
    /^[\w.-]{1,200}$/.test(sessionId) &&
    typeof relay === 'string' &&
    isTime(startedAt) &&
    isEndpoints(caller) &&
    isEndpoints(callee)
  )
}

const isEndpoints = (value: unknown): value is readonly RelayEndpoint[] =>
  Array.isArray(value) &&
  value.every((each: Partial<RelayEndpoint>) => {
    const { address, port } = Object(each) as Partial<RelayEndpoint>
    return typeof address === 'string' && typeof port === 'number'
  })

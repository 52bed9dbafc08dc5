/**
 * Recordings of calls: started and stopped while they are live, played and removed afterwards. Who
 * plays one is in the audit log (`control/app.ts` mounts it for this path).
 */
import { open } from 'node:fs/promises'
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import type { Schedule } from '../../schema/clock.ts'
import type { RecordingResult } from '../../schema/contracts/calls.ts'
import type { Principal } from '../auth/principal.ts'
import { requires } from '../auth/requires.ts'
import { repeatable } from '../auth/idempotency.ts'
import { isVisible, liveCallOf, exampleCallUuid } from './active-call-view.ts'
import { type Recording, RecordingStore } from './recording-store.ts'
import { ApiError, conflict, notFound } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { ok } from '../http/envelope.ts'
import type { Platform } from '../http/platform.ts'
import { validate, describeRoute } from '../http/validate.ts'
import { atInstanceOfCall, fileOfPeer, streamedBody } from '../instances/peer-answers.ts'
import type { OtherInstances, WithOthers } from '../instances/other-instances.ts'
import { data, text } from '../http/operation.ts'
import { RecordingReaders } from './recording-readers.ts'

export const recordingPath = '/calls/:uuid/recording'

const path = z.strictObject({ uuid: z.guid() })
const controlBody = z.strictObject({
  call_uuid: z.guid(),
  action: z.enum(['start', 'stop']),
})

type RecordingDeps = Pick<Platform, 'store' | 'engine' | 'settings' | 'schedule'> & WithOthers

export function recordingRoutes(deps: RecordingDeps) {
  const stored = new RecordingStore(deps.store, deps.settings.recordingsPath ?? '')

  return new Hono<ControlEnv>()
    .route('/', controlRecordingRoute(deps))
    .route('/', getRecordingRoute(deps, stored))
    .route('/', deleteRecordingRoute(deps, stored))
}

const controlRecordingRoute = (deps: RecordingDeps) =>
  new Hono<ControlEnv>().post(
    '/telephony/recording',
    describeRoute({
      id: 'controlRecording',
      tag: 'Calls',
      instances: 'call',
      summary: 'Start or stop the recording of a live call',
      body: { call_uuid: exampleCallUuid, action: 'start' },
      answer: data(
        z.strictObject({ call_uuid: z.string(), status: z.enum(['recording', 'stopped']) }),
        { call_uuid: exampleCallUuid, status: 'recording' },
      ),
      refusals: [404, 409, 501, 503],
    }),
    requires('calls:record'),
    validate('json', controlBody),
    repeatable(),
    atInstanceOfCall(deps),
    async (c) => {
      const { call_uuid: uuid, action } = c.req.valid('json')
      liveCallOf(deps.engine, uuid, c.var.principal)
      const before = { recording: deps.engine.recordings.isRecording(uuid) }
      const status = doneOrThrow(await deps.engine.recordings.control(uuid, action))
      c.set('change', { before, after: { recording: status === 'recording' } })
      return ok(c, { call_uuid: uuid, status })
    },
  )

const getRecordingRoute = (deps: RecordingDeps, stored: RecordingStore) => {
  const readers = new RecordingReaders()
  return new Hono<ControlEnv>().get(
    recordingPath,
    describeRoute({
      id: 'getRecording',
      tag: 'Calls',
      summary: 'Get the recording of a call: WAV, the caller left, the callee right',
      answer: text('audio/wav', 'RIFF…'),
      hasRanges: true,
      refusals: [416, 503],
    }),
    requires('recordings:listen'),
    validate('param', path),
    async (c) => {
      const recording = await find(stored, c.var.principal, c.req.valid('param').uuid)
      return answerWith(c, recording, {
        file: stored.pathOf(recording),
        readers,
        others: deps.others,
        schedule: deps.schedule,
      })
    },
  )
}

const deleteRecordingRoute = (deps: RecordingDeps, stored: RecordingStore) =>
  new Hono<ControlEnv>().delete(
    recordingPath,
    describeRoute({
      id: 'deleteRecording',
      tag: 'Calls',
      summary: 'Delete the recording of a call',
      answer: data(z.strictObject({ call_uuid: z.string(), deleted: z.literal(true) }), {
        call_uuid: exampleCallUuid,
        deleted: true,
      }),
    }),
    requires('recordings:delete'),
    validate('param', path),
    async (c) => {
      const recording = await find(stored, c.var.principal, c.req.valid('param').uuid)
      if (!(await stored.isHere(recording))) {
        const answer = await fileOfPeer(c, deps.others)
        if (answer !== undefined) return answer
        // Another instance asks: the file may be with a further one.
        if (c.get('instanceRequest') !== undefined) throw notFound('recording')
      }
      await stored.remove(recording)
      c.set('change', { before: recording, after: null })
      return ok(c, { call_uuid: recording.call_uuid, deleted: true })
    },
  )

async function find(
  stored: RecordingStore,
  principal: Principal,
  uuid: string,
): Promise<Recording> {
  const recording = await stored.find(uuid)
  if (recording === undefined || !isVisible(recording.tenant_id, principal))
    throw notFound('recording')
  return recording
}

interface RecordingAccess {
  /** Path of the file on this disk. */
  readonly file: string | undefined
  readonly readers: RecordingReaders
  readonly others: OtherInstances | undefined
  readonly schedule: Schedule
}

async function answerWith(
  c: Context<ControlEnv>,
  { call_uuid: uuid, bytes, sha256 }: Recording,
  { file, readers, others, schedule }: RecordingAccess,
): Promise<Response> {
  const etag = `"${sha256}"`
  const headers = {
    'Content-Type': 'audio/wav',
    'Accept-Ranges': 'bytes',
    ETag: etag,
    'Content-Disposition': `attachment; filename="${uuid}.wav"`,
  }
  // RFC 9110 §13.1.5: of another file, the whole is wanted.
  const isSame = (c.req.header('if-range') ?? etag) === etag
  const range = byteRange(isSame ? c.req.header('range') : undefined, bytes)
  if (range.kind === 'unsatisfiable')
    throw new ApiError(
      416,
      'range_not_satisfiable',
      'The requested range is beyond the end of the recording',
      {
        headers: { 'Content-Range': `bytes */${bytes}` },
      },
    )
  const { start, end } = range.kind === 'part' ? range : { start: 0, end: bytes - 1 }
  const length = { 'Content-Length': String(end - start + 1) }
  if (c.req.method === 'HEAD') return c.body(null, 200, { ...headers, ...length })
  if (file === undefined) throw notFound('recording')
  const handle = await open(file).catch(() => undefined)
  // An instance that asks goes on to the next one, also when this one has no place for its readers.
  if (handle === undefined && c.get('instanceRequest') !== undefined) throw notFound('recording')
  const leave = readers.enter(c.var.principal.tenantId)
  if (leave === undefined) {
    await handle?.close()
    throw new ApiError(503, 'too_many_readers', 'Too many recordings are being read', {
      headers: { 'Retry-After': '5' },
    })
  }
  if (handle === undefined) {
    const answer = await fileOfPeer(c, others, leave).catch((error: unknown) => {
      leave()
      throw error
    })
    if (answer !== undefined) return answer
    leave()
    // Removed meanwhile, or on a disk that is not there.
    throw notFound('recording')
  }
  // Closes the file at its end, after an error, and when the reader is gone.
  const source = handle.createReadStream({ start, end }).once('close', leave)
  const stream = streamedBody(source, { schedule, cut: () => void c.env.outgoing.destroy() })
  if (range.kind === 'whole') return c.body(stream, 200, { ...headers, ...length })
  const part = { 'Content-Range': `bytes ${start}-${end}/${bytes}` }
  return c.body(stream, 206, { ...headers, ...length, ...part })
}

function doneOrThrow(result: RecordingResult): 'recording' | 'stopped' {
  switch (result.kind) {
    case 'recording':
    case 'stopped':
      return result.kind
    case 'unknown_call':
      throw notFound('call')
    case 'call_not_answered':
      throw conflict(result.kind, 'The call is not answered yet')
    case 'recording_not_allowed':
      throw conflict(result.kind, 'No extension of this call allows recording')
    case 'call_not_anchored':
      throw conflict(result.kind, 'The media of this call does not pass a media relay')
    case 'relay_failed':
      throw new ApiError(503, result.kind, 'The media relay does not answer', {
        headers: { 'Retry-After': '5' },
      })
    default:
      throw new ApiError(501, result.kind, 'Recording is not set up')
  }
}

/** The header `Range` of a request for bytes (RFC 9110 §14). */
export type ByteRange =
  /** There is no range, or one that may be ignored: several, or another unit. */
  | { readonly kind: 'whole' }
  /** Both are part of it. */
  | { readonly kind: 'part'; readonly start: number; readonly end: number }
  | { readonly kind: 'unsatisfiable' }

/** `size` of the whole, at least 1. */
export function byteRange(header: string | undefined, size: number): ByteRange {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/i.exec(header?.replaceAll(' ', '') ?? '')
  const [, first = '', last = ''] = match ?? []
  if (first === '' && last === '') return { kind: 'whole' }
  if (first === '') return ending(Number(last), size)
  const start = Number(first)
  const end = last === '' ? size - 1 : Math.min(Number(last), size - 1)
  if (last !== '' && Number(last) < start) return { kind: 'whole' }
  return start < size ? { kind: 'part', start, end } : { kind: 'unsatisfiable' }
}

/** The last bytes. */
const ending = (count: number, size: number): ByteRange =>
  count === 0
    ? { kind: 'unsatisfiable' }
    : { kind: 'part', start: Math.max(0, size - count), end: size - 1 }

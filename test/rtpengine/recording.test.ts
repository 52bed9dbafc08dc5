/**
 * Calls between two phones that rtpengine captures, and what becomes of them: heard, on demand,
 * after a crash.
 */
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { readWav } from '../support/audio.ts'
import { Baresip } from '../support/baresip.ts'
import { RtpEngine } from '../support/rtpengine.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { domain, passwordOf, twoPhones } from '../support/two-phones.ts'
import { eventually } from '../support/waiting.ts'

const withWish = (call_recording: string) => ({
  ...twoPhones,
  extensions: twoPhones.extensions.map((extension) => ({ ...extension, call_recording })),
})

interface Init {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

async function open(wish: string, environment: Record<string, string> = {}) {
  const relay = await RtpEngine.start()
  onTestFinished(() => relay.stop())
  const recordings = join(relay.recordingFolder, 'finished')
  mkdirSync(recordings)
  const settings = {
    RTPENGINE: relay.setting,
    RECORDINGS_PATH: recordings,
    DRAIN_SECONDS: '0',
    RECORDING_SPOOL: relay.recordingFolder,
    ...environment,
  }
  const tollgate = await TollgateProcess.start(withWish(wish), settings)
  onTestFinished(() => tollgate.stop())
  const token = await tollgate.createKey('--name', 'test', '--scopes', '*')
  const request = (path: string, { headers, ...init }: Init = {}) =>
    fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1${path}`, {
      ...init,
      headers: { authorization: `Bearer ${token}`, ...headers },
    })
  const start = async (user: string, toneHz: number) => {
    const account = { user, domain, sipPort: tollgate.sipPort, password: passwordOf(user) }
    const phone = await Baresip.start({ ...account, toneHz })
    onTestFinished(() => phone.stop())
    await phone.registered()
    return phone
  }
  const low = await start('101', 500)
  const high = await start('102', 800)
  const call = async (): Promise<string> => {
    await low.command('dial', `sip:102@${domain}`)
    await low.next('CALL_ESTABLISHED')
    await Promise.all([low.hears(800), high.hears(500)])
    const [live] = (await (await request('/pbx/calls/active')).json()) as { call_uuid: string }[]
    if (live === undefined) throw new Error('no live call')
    return live.call_uuid
  }
  const file = (uuid: string) =>
    eventually(async () => {
      const response = await request(`/calls/${uuid}/recording`)
      expect(response.status).toBe(200)
      return Buffer.from(await response.arrayBuffer())
    })
  const captures = () => readdirSync(join(relay.recordingFolder, 'pcaps'))
  return { relay, tollgate, low, high, request, call, file, captures }
}

/** A second and a half of packets of 20 ms. */
async function hearsMore(phone: Baresip): Promise<void> {
  const before = await phone.received()
  await eventually(async () => expect(await phone.received()).toBeGreaterThan(before + 75))
}

const isRecording = async (request: (path: string) => Promise<Response>): Promise<boolean> => {
  const [live] = (await (await request('/pbx/calls/active')).json()) as { recording: boolean }[]
  return live?.recording === true
}

test('what each phone says is on its channel, and the file is no longer than the talk', async () => {
  const { tollgate, low, request, call, file, captures } = await open('always', {
    RECORDING_TONE: 'on',
  })
  const uuid = await call()
  await eventually(async () => expect(await isRecording(request)).toBe(true))
  await hearsMore(low)
  await low.command('hangup')
  const [record] = await tollgate.waitForCalls(1)
  const bytes = await file(uuid)
  const wav = readWav(bytes)
  expect(wav.seconds).toBeGreaterThan(1.4)
  expect(wav.seconds).toBeLessThan((record?.billsec ?? 0) + 1.5)
  expect(wav.tone(0, 500, 0.5, wav.seconds - 0.5)).toBeGreaterThan(0.8)
  expect(wav.tone(1, 800, 0.5, wav.seconds - 0.5)).toBeGreaterThan(0.8)
  expect(wav.tone(0, 800)).toBeLessThan(0.02)
  expect(wav.tone(1, 500)).toBeLessThan(0.02)
  const part = await request(`/calls/${uuid}/recording`, { headers: { range: 'bytes=0-3' } })
  expect([part.status, await part.text()]).toEqual([206, 'RIFF'])
  await eventually(() => expect(captures()).toEqual([]))
  const period = 'start_date=2020-01-01T00:00:00Z&end_date=2100-01-01T00:00:00Z'
  const report = (await (await request(`/reports/cdrs?${period}`)).json()) as {
    readonly records: readonly { readonly recording: unknown }[]
  }
  expect(report.records[0]?.recording).toMatchObject({ bytes: bytes.length })
  expect(tollgate.faults).toEqual([])
})

test('after kill -9 the recording of a call that goes on goes on', async () => {
  const { tollgate, low, request, call, file } = await open('always')
  const uuid = await call()
  await tollgate.kill()
  await tollgate.restart()
  await eventually(async () => expect(await isRecording(request)).toBe(true))
  await hearsMore(low)
  await low.command('hangup')
  await tollgate.waitForCalls(1)
  const wav = readWav(await file(uuid))
  expect(wav.tone(0, 500, 0.5, wav.seconds - 0.5)).toBeGreaterThan(0.8)
  expect(wav.tone(1, 800, 0.5, wav.seconds - 0.5)).toBeGreaterThan(0.8)
})

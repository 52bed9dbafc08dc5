/** Calls between two phones that rtpengine captures, and what becomes of them: heard, on demand, after a crash. */
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { readWav } from '../support/audio.ts'
import { Baresip } from '../support/baresip.ts'
import { RtpEngine } from '../support/rtpengine.ts'
import { watchStandstill } from '../support/standstill.ts'
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
  const tollgate = await TollgateProcess.start(withWish(wish), settings, { isActivated: true })
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

/** The phones talk for so long. */
async function talk(ms: number): Promise<void> {
  const from = performance.now()
  await eventually(() => expect(performance.now() - from).toBeGreaterThan(ms))
}

const isRecording = async (request: (path: string) => Promise<Response>): Promise<boolean> => {
  const [live] = (await (await request('/pbx/calls/active')).json()) as { recording: boolean }[]
  return live?.recording === true
}

test('what each phone says is on its channel, and the file is as long as the talk', async () => {
  const { tollgate, low, request, call, file, captures } = await open('always', {
    RECORDING_TONE: 'on',
  })
  const standstillMs = watchStandstill(onTestFinished)
  const uuid = await call()
  await eventually(async () => expect(await isRecording(request)).toBe(true))
  await talk(2_000)
  await low.command('hangup')
  const [record] = await tollgate.waitForCalls(1)
  const bytes = await file(uuid)
  const wav = readWav(bytes)
  const stoodSeconds = standstillMs() / 1_000
  expect(Math.abs(wav.seconds - (record?.billsec ?? 0))).toBeLessThan(1.5 + stoodSeconds)
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

test('on demand, what is said between stop and start is silence', async () => {
  const { low, request, call, file, tollgate } = await open('on_demand')
  const uuid = await call()
  /** When an action was asked for, and when it was answered: seconds. */
  const control = async (action: string) => {
    const askedAt = performance.now() / 1_000
    const body = JSON.stringify({ call_uuid: uuid, action })
    const headers = { 'content-type': 'application/json' }
    const response = await request('/telephony/recording', { method: 'POST', headers, body })
    expect(response.status).toBe(200)
    const answeredAt = performance.now() / 1_000
    await talk(1_000)
    return { askedAt, answeredAt }
  }
  expect(await isRecording(request)).toBe(false)
  const [begun, paused] = [await control('start'), await control('stop')]
  const [resumed, over] = [await control('start'), await control('stop')]
  await low.command('hangup')
  await tollgate.waitForCalls(1)
  const wav = readWav(await file(uuid))
  expect(wav.seconds).toBeGreaterThan(over.askedAt - begun.answeredAt - 0.2)
  expect(wav.seconds).toBeLessThan(over.answeredAt - begun.askedAt + 1.2)
  expect(wav.tone(0, 500, 0.2, 0.8)).toBeGreaterThan(0.8)
  const silence = (paused.answeredAt - begun.askedAt + resumed.askedAt - begun.answeredAt) / 2
  expect(wav.peak(0, silence - 0.1, silence + 0.1)).toBe(0)
  expect(wav.tone(1, 800, wav.seconds - 0.8, wav.seconds - 0.2)).toBeGreaterThan(0.8)
})

const successions: [string, (tollgate: TollgateProcess) => Promise<unknown>][] = [
  ['kill -9', (tollgate) => tollgate.kill().then(() => tollgate.restart())],
  ['a restart on the same sockets', (tollgate) => tollgate.restartInOrder()],
]

test.each(successions)(
  'after %s the recording of a call that goes on goes on',
  async (_, succeed) => {
    const { tollgate, low, request, call, file } = await open('always')
    const uuid = await call()
    await succeed(tollgate)
    await eventually(async () => expect(await isRecording(request)).toBe(true))
    await talk(1_000)
    await low.command('hangup')
    await tollgate.waitForCalls(1)
    const wav = readWav(await file(uuid))
    expect(wav.tone(0, 500, 0.5, wav.seconds - 0.5)).toBeGreaterThan(0.8)
    expect(wav.tone(1, 800, 0.5, wav.seconds - 0.5)).toBeGreaterThan(0.8)
  },
)

test('a relay that dies takes nothing with it but what it had not written, and what must be recorded is refused then', async () => {
  const { tollgate, relay, low, call, file } = await open('always', {
    MEDIA_TIMEOUT_SECONDS: '0',
    RECORDING_REQUIRED: 'on',
  })
  const uuid = await call()
  await talk(1_500)
  await relay.kill()
  await low.command('hangup')
  await low.next('CALL_CLOSED')
  await tollgate.waitForCalls(1)
  const wav = readWav(await file(uuid))
  expect(wav.tone(0, 500, 0.2, 0.8)).toBeGreaterThan(0.8)
  expect(wav.tone(1, 800, 0.2, 0.8)).toBeGreaterThan(0.8)
  // What must be recorded does not take place without a relay.
  await low.command('dial', `sip:102@${domain}`)
  const refused = await low.next('CALL_CLOSED')
  expect(refused.param).toContain('503')
})

/** What a request to a media relay costs: CPU of this process per round trip, with a real rtpengine on the other end. */
import { NgClient, openNgSocket } from '../../engine/media/relay/ng-client.ts'
import { decodeBencode, encodeBencode } from '../../engine/media/relay/bencode.ts'
import type { NgRequest } from '../../engine/media/relay/relays.ts'
import { RtpEngine } from '../support/rtpengine.ts'
import { median, spread } from './load/figures.ts'

export const describe =
  'CPU per round trip of the ng protocol (at most 30 µs), and of bencode alone; arguments: requests=2000 turns=7'

const AT_ONCE = 10

const sdp = [
  'v=0',
  'o=- 1 1 IN IP4 127.0.0.1',
  's=-',
  'c=IN IP4 127.0.0.1',
  't=0 0',
  'm=audio 40000 RTP/AVP 0 8 101',
  'a=rtpmap:0 PCMU/8000',
  'a=rtpmap:8 PCMA/8000',
  'a=rtpmap:101 telephone-event/8000',
  'a=fmtp:101 0-16',
  'a=ptime:20',
  'a=sendrecv',
  '',
].join('\r\n')

const flags = {
  replace: ['origin', 'session-connection'],
  'generate RTCP': 'on',
  ICE: 'remove',
  DTLS: 'off',
  SDES: ['off'],
  'rtcp-mux': ['demux'],
}

const about = (command: string, call: number): NgRequest => ({
  command,
  'call-id': `tollgate-bench-${call}`,
  'from-tag': `${call}a`,
  'to-tag': `${call}b`,
  ...(command === 'delete' ? { 'delete-delay': 0 } : { ...flags, sdp }),
})

export async function run(words: readonly string[] = []): Promise<void> {
  const options = new Map(words.map((word) => word.split('=') as [string, string | undefined]))
  const requests = Number(options.get('requests') ?? 2_000)
  const turns = Number(options.get('turns') ?? 7)
  const engine = await RtpEngine.start({ words: ['--log-level=3'], shares: 8 })
  let cookies = 0
  const client = new NgClient({
    open: (events) => openNgSocket({ address: '127.0.0.1', port: engine.port }, events),
    newCookie: () => `bench${process.pid}_${(cookies++).toString(36)}`,
    now: () => performance.now(),
    schedule: (work, delayMs) => {
      const timer = setTimeout(work, delayMs)
      return () => clearTimeout(timer)
    },
    onAnswer: () => undefined,
    onTimeout: () => undefined,
    onRefusal: () => undefined,
  })
  const inTurns = async (command: string): Promise<number> => {
    const before = process.cpuUsage()
    for (let call = 0; call < requests; call += AT_ONCE)
      await Promise.all(
        Array.from({ length: AT_ONCE }, (_, index) => client.request(about(command, call + index))),
      )
    const { user, system } = process.cpuUsage(before)
    return (user + system) / requests
  }
  const micros: Record<string, number[]> = { ping: [], offer: [], answer: [], delete: [] }
  // The first turn warms up.
  for (let turn = 0; turn <= turns; turn++)
    for (const [command, figures] of Object.entries(micros)) {
      const spent = await inTurns(command)
      if (turn > 0) figures.push(spent)
    }
  for (const [command, figures] of Object.entries(micros))
    console.log(`  ${command}: ${median(figures).toFixed(1)} µs ${spread(figures)}`)
  console.log(`  ${(await engine.sessions()).length} sessions are left at the relay`)
  printBencode()
  client.close()
  await engine.stop()
}

function printBencode(): void {
  const request = about('offer', 1)
  const answer = Buffer.from(`cookie ${encodeBencode({ sdp, result: 'ok' })}`)
  const rounds = 200_000
  const perRound = (work: () => unknown): string => {
    for (let round = 0; round < rounds; round++) work()
    const before = performance.now()
    for (let round = 0; round < rounds; round++) work()
    return (((performance.now() - before) * 1_000) / rounds).toFixed(2)
  }
  const written = perRound(() => encodeBencode(request))
  const read = perRound(() => decodeBencode(answer, 'cookie '.length))
  console.log(`  bencode of an offer: written in ${written} µs; of its answer: read in ${read} µs`)
}

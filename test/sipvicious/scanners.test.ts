/**
 * SIPVicious, the scanner that every SIP server on the internet meets: under its name, and without.
 */
import { execFile } from 'node:child_process'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'

const domain = 'acme.example'
const seed = {
  tenants: [{ slug: 'acme', domains: [domain] }],
  extensions: ['101', '105'].map((extension) => ({
    tenant: 'acme',
    extension,
    password: `secret-${extension}`,
    display_name: `Phone ${extension}`,
  })),
}

/**
 * Each scanner has an address of its own, as the tests run beside each other: the scanners wait for
 * most of their time. Not that of Tollgate, as SIPVicious takes it: those of nodes of the platform
 * are not shut out.
 */
const addresses = {
  named: '127.0.0.4',
  disguised: '127.0.0.5',
  svcrack: '127.0.0.7',
} as const

let tollgate: TollgateProcess
const disguises: Disguise[] = []

// Loopback is not trusted here: it stands for the internet.
beforeAll(async () => {
  tollgate = await TollgateProcess.start(seed, { TRUSTED_SOURCES: '192.0.2.0/24' })
})
afterAll(async () => {
  for (const disguise of disguises) disguise.close()
  await tollgate.stop()
})

/** Passes datagrams on to Tollgate and back. It gives the scanner this name, and this address. */
class Disguise {
  readonly #front: Socket
  readonly #back: Socket
  answers = 0

  constructor(front: Socket, back: Socket, sipPort: number, name: string) {
    this.#front = front
    this.#back = back
    let client = { port: 0, address: '' }
    front.on('message', (bytes, { port, address }) => {
      client = { port, address }
      const text = bytes.toString('latin1').replace('friendly-scanner', name)
      back.send(text, sipPort, '127.0.0.1')
    })
    back.on('message', (bytes) => {
      this.answers += 1
      front.send(bytes, client.port, client.address)
    })
  }

  static async open(sipPort: number, from: string, name = 'Desk Phone 2'): Promise<Disguise> {
    const [front, back] = [createSocket('udp4'), createSocket('udp4')]
    front.bind(0, '127.0.0.1')
    back.bind(0, from)
    await Promise.all([once(front, 'listening'), once(back, 'listening')])
    const disguise = new Disguise(front, back, sipPort, name)
    disguises.push(disguise)
    return disguise
  }

  get port(): number {
    return this.#front.address().port
  }

  close(): void {
    this.#front.close()
    this.#back.close()
  }
}

/** The output of the program; it ends by itself, `silenceSeconds` after the last answer. */
async function run(
  program: 'svwar' | 'svcrack',
  port: number,
  words: readonly string[],
): Promise<string> {
  const localPort = await freePort()
  const common = ['-p', String(port), '-P', String(localPort), '--domain', domain]
  const quick = ['-b', '127.0.0.1', '-t', '0.01', '--maximumtime', '2']
  return new Promise((resolve) => {
    const options = { timeout: 40_000, env: { ...process.env, HOME: tollgate.folder } }
    execFile(program, [...common, ...quick, ...words, '127.0.0.1'], options, (_e, out, complaint) =>
      resolve(out + complaint),
    )
  })
}

/**
 * A scanner gives up after two seconds of silence: it scans again where the machine stood still for
 * so long.
 */
async function untilHeard(scan: () => Promise<boolean>): Promise<void> {
  for (let scans = 0; scans < 5; scans += 1) if (await scan()) return
  throw new Error('the scanner heard nothing')
}

function passwords(right: string): string {
  const file = join(tollgate.folder, 'passwords')
  const guesses = Array.from({ length: 60 }, (_, index) => `guess-${index}`)
  guesses[40] = right
  writeFileSync(file, `${guesses.join('\n')}\n`)
  return file
}

/** The numbers in svwar's table of what exists. */
const extensionsIn = (report: string): string[] => [...(report.match(/^\| 1\d\d\b/gm) ?? [])]

const bansOf = (address: string): string[] =>
  tollgate.log.filter((line) => line.includes('a source is banned') && line.includes(address))

describe.concurrent('sipvicious', () => {
  test('under its own name the scanner hears nothing, and the log has one line of it', async () => {
    const scan = async (method: string) => {
      const disguise = await Disguise.open(tollgate.sipPort, addresses.named, 'friendly-scanner')
      const report = await run('svwar', disguise.port, ['-e', '100-110', '-m', method])
      return [extensionsIn(report), disguise.answers]
    }
    const scans = await Promise.all(['REGISTER', 'OPTIONS', 'INVITE'].map(scan))
    expect(scans).toEqual(scans.map(() => [[], 0]))
    expect(tollgate.log.filter((line) => line.includes('scanner'))).toHaveLength(1)
    expect(bansOf(addresses.named)).toEqual([])
  })

  test('in disguise svwar cannot tell an extension from a number that is none', async () => {
    const disguise = await Disguise.open(tollgate.sipPort, addresses.disguised)
    await untilHeard(async () => {
      const words = ['-e', '100-110', '--force', '-m', 'REGISTER']
      expect(extensionsIn(await run('svwar', disguise.port, words))).toEqual([])
      return disguise.answers > 0
    })
    expect(bansOf(addresses.disguised)).toEqual([])
  })

  test('svcrack does not find the password that is in its list, and is banned', async () => {
    const disguise = await Disguise.open(tollgate.sipPort, addresses.svcrack)
    await untilHeard(async () => {
      const words = ['-u', '101', '-d', passwords('secret-101')]
      expect(await run('svcrack', disguise.port, words)).not.toContain('secret-101')
      return bansOf(addresses.svcrack).length > 0
    })
    const bans = bansOf(addresses.svcrack)
    expect(bans).toHaveLength(1)
    expect(bans[0]).toContain('password_guessing')
    // From now on there is silence.
    const { answers } = disguise
    await run('svwar', disguise.port, ['-e', '101'])
    expect(disguise.answers).toBe(answers)
  })
})

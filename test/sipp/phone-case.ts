/**
 * One case with phones: SIPp registers a port for an extension, answers there, and calls from there.
 * Loopback is not trusted: a source that is not a phone, node or carrier is unknown.
 */
import { onTestFinished } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { callWith, failWith, SippNode, type SippResult } from '../support/sipp.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { patientNodes } from '../support/waiting.ts'
import { seedFor } from './call-case.ts'

export const domain = 'acme.example'

/** Extension 101 pays from the wallet of `paying`, 102 from an empty one. */
const extensions = [
  { extension: '101', customer: 'paying' },
  { extension: '102', customer: 'poor' },
].map((fields) => ({
  tenant: 'acme',
  password: `secret-${fields.extension}`,
  display_name: fields.extension,
  ...fields,
}))

export interface PhoneCase {
  readonly tollgate: TollgateProcess
  phone(user: string): Promise<SippPhone>
}

/** `seed` gets the ports of phones, carriers and callers that it needs by itself. */
export async function startPhones(
  seed: Readonly<Record<string, unknown>> = {},
  environment: Readonly<Record<string, string>> = {},
): Promise<PhoneCase> {
  const tollgate = await TollgateProcess.start(
    {
      ...seedFor([]),
      dispatcher: [],
      tenants: [{ slug: 'acme', domains: [domain] }],
      extensions,
      ...seed,
    },
    { ...patientNodes, TRUSTED_SOURCES: '192.0.2.0/24', ...environment },
  )
  onTestFinished(() => tollgate.stop())
  return {
    tollgate,
    phone: async (user) => new SippPhone(tollgate.sipPort, user, await freePort()),
  }
}

interface Part {
  readonly number?: string
  readonly user?: string
  readonly password?: string
}

/** A phone at one port; SIPp plays its parts one after the other. */
export class SippPhone {
  readonly port: number
  readonly #user: string
  readonly #sipPort: number

  constructor(sipPort: number, user: string, port: number) {
    this.#sipPort = sipPort
    this.#user = user
    this.port = port
  }

  register(): Promise<SippResult> {
    return this.#run('phones/registers', {})
  }

  /** `user` is the number that it claims, if it is not its own. */
  call(number: string, scenario = 'phones/calls', user = this.#user): Promise<SippResult> {
    return this.#run(scenario, { user, number })
  }

  /** A part that cannot go as it is written; resolves when SIPp has complained so. */
  fail(complaint: RegExp, part: Part): Promise<void> {
    const scenario = part.number === undefined ? 'phones/registers' : 'phones/calls'
    return failWith(complaint, `${scenario}.xml`, this.#sipPort, this.#options(part))
  }

  /** It answers calls from now on. */
  async answer(): Promise<SippNode> {
    const node = await SippNode.start('nodes/answers.xml', { port: this.port })
    onTestFinished(async () => void (await node.stop()))
    return node
  }

  #run(scenario: string, part: Part): Promise<SippResult> {
    return callWith(`${scenario}.xml`, this.#sipPort, this.#options(part))
  }

  #options({ user = this.#user, password = `secret-${this.#user}`, number = '0' }: Part) {
    return {
      port: this.port,
      service: number,
      keys: { domain, user },
      extra: ['-au', this.#user, '-ap', password],
    }
  }
}

/**
 * Phones and a carrier: SIPp registers a port for an extension, answers there, and calls from
 * there. Loopback is not trusted: a source that is not a phone, node or carrier is unknown.
 */
import { freePort } from '../support/free-port.ts'
import { callWith, failWith, SippNode, type SippResult } from '../support/sipp.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { patientInstances } from '../support/waiting.ts'
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
  /** The port from which the carrier calls. */
  readonly trunkPort: number
  phone(user: string): Promise<SippPhone>
}

/** The carrier takes calls at `gatewayPort`. */
export async function startPhones(gatewayPort: number): Promise<PhoneCase> {
  const trunkPort = await freePort()
  const gateways = [
    { host: '127.0.0.1', port: gatewayPort, inbound: false },
    { host: '127.0.0.1', port: trunkPort, outbound: false },
  ]
  const tollgate = await TollgateProcess.start(
    {
      ...seedFor([]),
      dispatcher: [],
      tenants: [{ slug: 'acme', domains: [domain] }],
      extensions,
      carriers: [{ name: 'north', tenant: 'acme', customer: 'paying', gateways }],
      outbound_routes: [
        { name: 'out', tenant: 'acme', prefix: '', carrier: 'north' },
        { name: 'help', tenant: 'acme', prefix: '112', carrier: 'north', emergency: true },
      ],
      inbound_routes: [{ name: 'in', tenant: 'acme', prefix: '18005550101', extension: '101' }],
    },
    { ...patientInstances, TRUSTED_SOURCES: '192.0.2.0/24', DRAIN_SECONDS: '50' },
  )
  return {
    tollgate,
    trunkPort,
    phone: async (user) => new SippPhone(tollgate.sipPort, user, await freePort()),
  }
}

/** A phone at one port; SIPp plays its parts one after the other. */
class SippPhone {
  readonly port: number
  readonly #user: string
  readonly #sipPort: number

  constructor(sipPort: number, user: string, port: number) {
    this.#sipPort = sipPort
    this.#user = user
    this.port = port
  }

  register(): Promise<SippResult> {
    return callWith('phones/registers.xml', this.#sipPort, this.#options('0'))
  }

  /** `user` is the number that it claims, if it is not its own. */
  call(number: string, scenario = 'phones/calls', user = this.#user): Promise<SippResult> {
    return callWith(`${scenario}.xml`, this.#sipPort, this.#options(number, user))
  }

  /** A call that cannot go as it is written; resolves when SIPp has complained so. */
  fail(complaint: RegExp, number: string): Promise<void> {
    return failWith(complaint, 'phones/calls.xml', this.#sipPort, this.#options(number))
  }

  /** It answers calls from now on. */
  answer(): Promise<SippNode> {
    return SippNode.start('nodes/answers.xml', { port: this.port })
  }

  #options(number: string, user = this.#user) {
    return {
      port: this.port,
      service: number,
      keys: { domain, user },
      extra: ['-au', this.#user, '-ap', `secret-${this.#user}`],
    }
  }
}

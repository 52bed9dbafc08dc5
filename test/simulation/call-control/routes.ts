/** Where calls may go: destinations that routing could name. */
import type { PhoneCandidate } from '../../../engine/call/dialing/outgoing-invite.ts'
import type { CallDestination, Route } from '../../../engine/call/inbound/route.ts'
import type { GatewayCandidate } from '../../../engine/routing/routing.ts'
import type { HuntingRules } from '../../../schema/contracts/hunting.ts'
import type { Chance } from './chance.ts'

const address = { host: '10.2.0.1', port: 5_060, transport: 'udp' } as const

export class Routes {
  readonly #chance: Chance

  constructor(chance: Chance) {
    this.#chance = chance
  }

  route(): Route {
    const chance = this.#chance
    const direction = chance.pick(['inbound', 'outbound', 'internal'] as const)
    if (chance.is(0.03)) {
      const end = { kind: 'refused', status: 404, reason: 'Not Found', code: 'no_route' } as const
      return { kind: 'refused', direction, end }
    }
    const candidates = Array.from({ length: chance.pick([0, 1, 1, 1, 1, 1, 1, 2, 2, 3]) }, () =>
      this.#destination(),
    )
    return { kind: 'candidates', direction, candidates }
  }

  #destination(): CallDestination {
    const chance = this.#chance
    const id = chance.between(1, 9)
    const uri = `sip:10.2.0.${id}`
    switch (chance.weighted({ node: 40, gateway: 20, extension: 30, agent: 5, domain: 5 })) {
      case 'node':
        return { kind: 'node', nodeId: id, setId: 1, tenantId: null, uri, ...address }
      case 'gateway':
        return this.gateway()
      case 'extension': {
        const mailbox = { uri: 'sip:vm', extension: '100', domain: 'd', tenantId: 1 }
        const voicemail = chance.is(0.4) ? ({ kind: 'voicemail', ...mailbox } as const) : undefined
        const phones = this.phones(chance.pick([0, 1, 1, 1, 1, 2, 2, 3]))
        return { kind: 'extension', uri: `sip:10${id}@d`, tenantId: 1, phones, voicemail }
      }
      case 'agent':
        return { kind: 'agent', agentId: id, name: 'a', tenantId: null, uri }
      case 'domain':
      default:
        return { kind: 'domain', uri, tenantId: null }
    }
  }

  gateway(): GatewayCandidate {
    const chance = this.#chance
    const id = chance.between(1, 9)
    return {
      kind: 'gateway',
      gatewayId: id,
      carrierId: id,
      carrierName: 'c',
      routeName: 'r',
      bought: { number: '1', dialled: '1', ratePlanId: null, tenantId: null },
      uri: `sip:10.2.0.${id}`,
      ...address,
      number: '49',
      auth: {
        type: 'ip',
        username: null,
        password: null,
        realm: null,
        fromUser: null,
        fromDomain: null,
        expiresSeconds: 60,
      },
      callerId: { mode: 'pass', value: null },
      ...(chance.is(0.4) && { hunting: this.#hunting() }),
    }
  }

  #hunting(): HuntingRules {
    const chance = this.#chance
    return {
      nextOn: chance.pick([null, ['4xx'], ['5xx', '603']]),
      stopOn: chance.pick([[], ['503']]),
      maxAttempts: chance.pick([null, 1, 2]),
      maxSeconds: chance.pick([null, 1, 30]),
      redirects: chance.pick(['refuse', 'follow', 'follow']),
      answers: chance.is(0.5) ? [{ match: '4xx', status: 480, reason: null }] : [],
    }
  }

  phones(count: number): readonly PhoneCandidate[] {
    return Array.from({ length: count }, (_, index) => ({
      kind: 'phone',
      uri: `sip:100@10.3.0.${index}`,
      routes: [],
      nextHop: undefined,
      extension: '100',
      domain: 'd',
      tenantId: 1,
    }))
  }
}

/** What is wrong in each of the eleven incidents: the test holds an agent's findings against it. */
import {
  BY_NORTHERN,
  BY_SOUTHERN,
  GUESSED_EXTENSION,
  OFFICE_DOMAIN,
  PREMIUM,
  STRANGER_HOSTS,
  UNKNOWN_CALLER,
  UNPRICED,
} from '../../engine/commands/demo/incidents/incident-data.ts'

export interface ExpectedCause {
  readonly incident: string
  /** The symptom in the words of a person. */
  readonly symptom: string
  readonly cause: string
  /** Each of them has to be in what names the cause. */
  readonly names: readonly string[]
  /** The tool of the first step, which can be undone; null: no tool can, and a person has to act. */
  readonly firstStep: string | null
}

const bare = (number: string): string => number.replace('+', '')

export const expectedCauses: readonly ExpectedCause[] = [
  {
    incident: 'dead_node',
    symptom: 'Some calls of the office take several seconds to ring.',
    cause: 'A node of dispatcher set 1 does not answer any more.',
    names: ['office 3'],
    firstStep: 'set_dispatcher_state',
  },
  {
    incident: 'premium_burst',
    symptom: 'A customer asks why it paid so much in the last minutes.',
    cause: `acme-main calls premium numbers (${PREMIUM}), 15 within seconds, which it never did.`,
    names: ['acme-main', PREMIUM],
    firstStep: 'set_spend_guard',
  },
  {
    incident: 'empty_wallet',
    symptom: 'globex cannot call.',
    cause: 'The wallet of globex is empty.',
    names: ['globex', 'insufficient_funds'],
    firstStep: 'set_customer_limits',
  },
  {
    incident: 'unknown_caller',
    symptom: 'A customer says that its new number cannot call.',
    cause: `No customer owns ${UNKNOWN_CALLER}.`,
    names: [bare(UNKNOWN_CALLER), 'unknown_caller'],
    firstStep: null,
  },
  {
    incident: 'missing_rate',
    symptom: 'initech cannot call Berlin.',
    cause: `The rate plan of initech has no rate for ${UNPRICED}.`,
    names: ['initech', UNPRICED, 'no_rate'],
    firstStep: null,
  },
  {
    incident: 'leaked_key',
    symptom: 'The security team asks whether a key has leaked.',
    cause: 'The key ci-reporting is used from a new address, which tries what the key may not do.',
    names: ['ci-reporting', '203.0.113.66'],
    firstStep: 'suspend_api_key',
  },
  {
    incident: 'trunk_down',
    symptom: `Calls to ${BY_NORTHERN} fail.`,
    cause: 'The gateway of the carrier northern does not answer.',
    names: ['northern'],
    firstStep: 'set_trunk_state',
  },
  {
    incident: 'failing_carrier',
    symptom: `Calls to ${BY_SOUTHERN} fail.`,
    cause: 'The carrier southern answers its probes, and refuses every call with 503.',
    names: ['southern', '503'],
    firstStep: 'set_trunk_state',
  },
  {
    incident: 'state_by_hand',
    symptom: 'Support loses calls.',
    cause:
      'night-shift has taken support 1 out of service by hand, and support 2 takes one call at a time.',
    names: ['support 1', 'night-shift'],
    firstStep: 'set_dispatcher_state',
  },
  {
    incident: 'concurrent_limit',
    symptom: 'umbrella says that every second call fails.',
    cause: 'umbrella may have one call at a time.',
    names: ['umbrella', 'concurrent_limit'],
    firstStep: 'set_customer_limits',
  },
  {
    incident: 'registration_attack',
    symptom: 'The log says that more passwords were wrong than usual.',
    cause: `Two strangers guess the password of extension ${GUESSED_EXTENSION}.`,
    names: [`${GUESSED_EXTENSION}@${OFFICE_DOMAIN}`, ...STRANGER_HOSTS],
    firstStep: 'ban_address',
  },
]

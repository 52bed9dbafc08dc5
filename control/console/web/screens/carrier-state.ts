/** The state of a carrier for an operator: its colour, why it is so, and what to do about it. */
import type { Carrier } from '../api/views.ts'
import { clockText, type Tone } from '../parts/format.ts'

export interface ThingState {
  readonly tone: Tone
  readonly text: string
  /** Why it is so, and what to do. Absent: nothing is to be done. */
  readonly advice?: string
}

type Known = Pick<Carrier, 'is_active' | 'status' | 'registration' | 'gateways' | 'max_calls'>

export function carrierState(carrier: Known): ThingState {
  const { is_active: isActive, status, registration, gateways, max_calls: most } = carrier
  if (!isActive)
    return {
      tone: 'plain',
      text: 'inactive',
      advice: 'It is switched off: no call goes to it. “Change” has the switch “In use”.',
    }
  if (registration === 'failed') return registrationFailed(carrier)
  const probed = gateways.filter(({ status: probe }) => probe !== null)
  const silent = probed.filter(({ status: probe }) => probe?.state !== 'active')
  if (silent.length > 0 && silent.length === probed.length)
    return { tone: 'bad', text: 'no gateway answers', advice: gatewayAdvice(silent) }
  if (registration === 'registering' || registration === 'unregistered')
    return {
      tone: 'warn',
      text: registration === 'registering' ? 'registering' : 'not registered',
      advice: 'The registrar has not answered yet: this takes some seconds after a change.',
    }
  if (!status.is_usable)
    return {
      tone: 'bad',
      text: 'not usable',
      advice: 'No gateway of it takes calls: one needs “Sends calls to it”.',
    }
  if (silent.length > 0)
    return {
      tone: 'warn',
      text: `${probed.length - silent.length} of ${probed.length} gateways answer`,
      advice: gatewayAdvice(silent),
    }
  if (most > 0 && status.active_calls >= most)
    return {
      tone: 'warn',
      text: 'full',
      advice: `It has ${status.active_calls} calls of ${most}: others take other routes.`,
    }
  return { tone: 'good', text: 'usable' }
}

/** Tells what the registrar has answered, and where to look. */
function registrationFailed({ status: { registration } }: Known): ThingState {
  const answer = registration?.last_answer
  const next = registration?.next_attempt_at
  const again = next == null ? '' : ` It is tried again at ${clockText(next)}.`
  if (answer == null)
    return { tone: 'bad', text: 'registration failed', advice: `No answer has come yet.${again}` }
  const { status, reason } = answer
  const said = status === 0 ? 'no answer' : `${status} ${reason}`
  return {
    tone: 'bad',
    text: `registration failed: ${said}`,
    advice: registrarAdvice(status) + again,
  }
}

/** Status 0: no answer has come. */
function registrarAdvice(status: number): string {
  switch (status) {
    case 0:
      return (
        'The registrar does not answer: check address, port and transport of the gateway, and ' +
        'that no firewall is in between.'
      )
    case 401:
    case 407:
      return (
        'User name or password is wrong: compare both with what the carrier gave you, and leave ' +
        'the realm empty unless it named one.'
      )
    case 403:
      return (
        'The carrier refuses this account: it may be blocked or unpaid, or allowed from another ' +
        'address only. Tell it the public address of this system.'
      )
    case 404:
      return (
        'The registrar does not know this user: check the user name, and the domain in From ' +
        'among “More settings”.'
      )
    case 423:
      return 'The carrier wants longer registrations: raise the seconds that a registration lasts.'
    default:
      return status >= 500 || status === 408 || status === 480
        ? 'The registrar is out of order: nothing needs to be changed here.'
        : 'Ask the carrier why its registrar answers so.'
  }
}

/** Why the first gateway that is out does not count as up. */
function gatewayAdvice([first]: Carrier['gateways']): string {
  if (first === undefined) return ''
  const { host, port, status } = first
  const place = `${host}:${port}`
  const probe = status?.last_probe
  if (probe == null || probe.status === 0)
    return (
      `${place} does not answer OPTIONS: check its address, port and transport, and that no ` +
      'firewall is in between.'
    )
  return (
    `${place} answers OPTIONS with ${probe.status} ${probe.reason}: the carrier may not know the ` +
    'address of this system yet.'
  )
}

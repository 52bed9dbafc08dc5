/** What a REGISTER asks for, and how its answer lists what there is. Pure. */
import { headerNamed } from '../sip-server/message/index.ts'
import type { Binding, Registration, Source } from './bindings.ts'
import { contactsOf } from './contact.ts'
import { pathOf } from './path.ts'
import { hasOption, type RequestHeaders } from './request.ts'

export function registrationOf(
  headers: RequestHeaders,
  source: Source,
  node: string,
): Registration {
  const expires = headerNamed(headers, 'expires')?.trim() ?? ''
  return {
    contacts: contactsOf(headerNamed(headers, 'contact')),
    expiresSeconds: /^\d{1,10}$/.test(expires) ? Number(expires) : undefined,
    callId: headerNamed(headers, 'call-id') ?? '',
    cseq: Number.parseInt(headerNamed(headers, 'cseq') ?? '0', 10),
    path: pathOf(headerNamed(headers, 'path')),
    knowsPath: hasOption(headers, 'supported', 'path') || hasOption(headers, 'require', 'path'),
    userAgent: (headerNamed(headers, 'user-agent') ?? '').slice(0, MAX_USER_AGENT),
    source,
    node,
  }
}

const MAX_USER_AGENT = 128

/** RFC 3261 §10.3 step 8: all bindings with what is left of them; RFC 3327 §5.3: the Path. */
export function listing(
  bindings: readonly Binding[],
  path: readonly string[],
  now: number,
): Record<string, string> {
  const headers: Record<string, string> = {}
  if (bindings.length > 0)
    headers['Contact'] = bindings.map((binding) => contactValue(binding, now)).join(', ')
  if (path.length > 0) headers['Path'] = path.join(', ')
  return headers
}

function contactValue({ contact, q, instance, regId, expiresAt }: Binding, now: number): string {
  const preference = q === 1_000 ? '' : `;q=${(q / 1_000).toFixed(3).replace(/0+$/, '0')}`
  const phone = instance === null ? '' : `;+sip.instance="${instance}"`
  const flow = regId === null ? '' : `;reg-id=${regId}`
  return `<${contact}>;expires=${Math.ceil((expiresAt - now) / 1_000)}${preference}${phone}${flow}`
}

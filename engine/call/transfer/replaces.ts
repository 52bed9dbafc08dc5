/** The Replaces header (RFC 3891 §6.1), also as it stands in a Refer-To. Pure. */

export interface Replaces {
  readonly callId: string
  /** Our tag, where the dialog is one of ours. */
  readonly toTag: string
  /** The peer's. */
  readonly fromTag: string
  /** Only a dialog that is not answered yet may be replaced. */
  readonly isEarlyOnly: boolean
}

/** Undefined: it cannot be read, or there is more than one, which §3 forbids. */
export function readReplaces(value: string): Replaces | undefined {
  const [callId = '', ...parameters] = value.split(';').map((part) => part.trim())
  let [toTag, fromTag] = ['', '']
  let isEarlyOnly = false
  for (const parameter of parameters) {
    const equals = parameter.indexOf('=')
    const name = (equals === -1 ? parameter : parameter.slice(0, equals)).trim().toLowerCase()
    const text = equals === -1 ? '' : parameter.slice(equals + 1).trim()
    if (name === 'to-tag') toTag = text
    else if (name === 'from-tag') fromTag = text
    else if (name === 'early-only') isEarlyOnly = true
  }
  const isReadable = callId !== '' && toTag !== '' && fromTag !== '' && !value.includes(',')
  return isReadable ? { callId, toTag, fromTag, isEarlyOnly } : undefined
}

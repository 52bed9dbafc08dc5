/** The addresses of this installation, by its settings, its interfaces and its other instances. */
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { networkCheck } from '../../schema/net/ip-address.ts'
import { sipTarget } from '../../schema/net/sip-target.ts'
import { type OwnListener, type OwnNetwork, usedPort } from '../../schema/rules/gateways.ts'
import { plainHost } from '../../schema/sip/index.ts'

interface ListenAddress {
  readonly protocol: string
  readonly host: string
  readonly port: number
}

interface OwnSettings {
  readonly sip: {
    readonly listen: readonly ListenAddress[]
    readonly advertisedHost: string | undefined
    readonly hostNames: readonly string[]
  }
  readonly instance: { readonly sipUri: string | undefined }
  readonly tenantNetworks: readonly string[]
}

interface KnownInstance {
  readonly sipUri: string | null
  readonly addresses: readonly string[]
}

interface OwnPlacesDeps {
  readonly config: OwnSettings
  /** The SIP listeners; absent: those of the settings. */
  readonly listeners?: () => readonly ListenAddress[]
  /** The instances that share the database. */
  readonly instances?: () => readonly KnownInstance[]
  /** Addresses that are known behind a name. */
  readonly addressesOf?: (host: string) => readonly string[]
}

export function ownPlacesOf({
  config,
  listeners = () => [],
  instances = () => [],
  addressesOf = () => [],
}: OwnPlacesDeps): OwnNetwork {
  const { sip, instance, tenantNetworks } = config
  const withAddresses = (host: string): readonly string[] => [host, ...addressesOf(host)]
  const named = (): readonly string[] => ownNames(config).flatMap(withAddresses)
  const listenersHere = (): OwnListener[] => {
    const served = listeners()
    return (served.length > 0 ? served : sip.listen).map(({ protocol, host, port }) => ({
      hosts: [...(isAny(host) ? machineAddresses() : [plainHost(host)]), ...named()],
      port,
      isDatagram: protocol === 'udp',
    }))
  }
  const announced = (): OwnListener[] => {
    const own = instance.sipUri === undefined ? [] : [{ sipUri: instance.sipUri, addresses: [] }]
    return [...own, ...instances()].flatMap(({ sipUri, addresses }) => {
      const target = sipTarget(sipUri ?? '')
      if (target === undefined) return []
      const hosts = [...withAddresses(target.host), ...addresses]
      return [{ hosts, port: usedPort(target), isDatagram: undefined }]
    })
  }
  return {
    networks: () => [
      ...interfaceCidrs(),
      ...named().filter((host) => isIP(host) !== 0),
      ...instances().flatMap(({ addresses }) => addresses),
    ],
    listeners: () => [...listenersHere(), ...announced()],
    allowed: tenantNetworks,
  }
}

/** Names by which others reach this process. */
export const ownNames = ({ sip: { advertisedHost, hostNames } }: Pick<OwnSettings, 'sip'>) =>
  [...hostNames, ...(advertisedHost === undefined ? [] : [advertisedHost])].map(plainHost)

const isAny = (host: string): boolean => isIP(host) !== 0 && /^[0:.]+$/.test(host)

const interfaceCidrs = (): readonly string[] =>
  Object.values(networkInterfaces()).flatMap((each = []) =>
    each.flatMap(({ cidr }) => (cidr === null ? [] : [cidr])),
  )

/** On loopback, each address of the network is the machine's. */
const machineAddresses = (): readonly string[] => [
  '127.0.0.0/8',
  '::1',
  ...Object.values(networkInterfaces()).flatMap((each = []) => each.map(({ address }) => address)),
]

/** Returns a check whether an address is this machine's own, as its interfaces are now. */
export const ownMachineCheck = (): ((address: string) => boolean) =>
  networkCheck(machineAddresses())

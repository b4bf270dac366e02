// An OpenID provider on loopback: client credentials become JWT access tokens. Its settings are JSON in the
// environment, so that no secret stands on a command line: {port, clients, claims, jwks, audience, lifetimeS,
// algorithm}; `claims` are further claims in the tokens of each client.
import Provider from 'oidc-provider';

const given = JSON.parse(process.env.KUSTOS_TEST_PROVIDER);
const issuer = `http://127.0.0.1:${given.port}`;
const resource = 'urn:kustos:kafka';

const provider = new Provider(issuer, {
  clients: Object.entries(given.clients).map(([client_id, client_secret]) => ({
    client_id,
    client_secret,
    grant_types: ['client_credentials'],
    response_types: [],
    redirect_uris: [],
    id_token_signed_response_alg: given.algorithm,
  })),
  jwks: given.jwks,
  extraTokenClaims: (_context, token) => given.claims[token.clientId],
  scopes: ['kafka'],
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => resource,
      getResourceServerInfo: () => ({
        scope: 'kafka',
        audience: given.audience,
        accessTokenTTL: given.lifetimeS,
        accessTokenFormat: 'jwt',
        jwt: { sign: { alg: given.algorithm } },
      }),
    },
  },
});

provider.listen(given.port, '127.0.0.1');

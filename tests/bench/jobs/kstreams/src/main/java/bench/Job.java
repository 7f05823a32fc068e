package bench;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;

/** The job in Kafka Streams: exactly_once_v2, one stream thread. TUNED=1: larger producer batches and polls. */
public class Job {
    static final ObjectMapper M = new ObjectMapper();

    static Serde<ObjectNode> json() {
        Serializer<ObjectNode> s = (t, v) -> {
            try { return v == null ? null : M.writeValueAsBytes(v); } catch (Exception e) { throw new SerializationException(e); }
        };
        Deserializer<ObjectNode> d = (t, b) -> {
            try { return b == null ? null : M.readValue(b, ObjectNode.class); } catch (Exception e) { throw new SerializationException(e); }
        };
        return Serdes.serdeFrom(s, d);
    }

    public static void main(String[] args) {
        Properties p = new Properties();
        p.put(StreamsConfig.APPLICATION_ID_CONFIG, System.getenv("GROUP"));
        p.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, System.getenv("BOOTSTRAP"));
        p.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        p.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 1);
        p.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, Long.parseLong(System.getenv("COMMIT_MS")));
        p.put(StreamsConfig.STATE_DIR_CONFIG, System.getenv("STATE_DIR"));
        p.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
        p.put(StreamsConfig.producerPrefix(ProducerConfig.COMPRESSION_TYPE_CONFIG), "lz4");
        if ("1".equals(System.getenv("TUNED"))) {
            p.put(StreamsConfig.producerPrefix(ProducerConfig.BATCH_SIZE_CONFIG), 262144);
            p.put(StreamsConfig.producerPrefix(ProducerConfig.BUFFER_MEMORY_CONFIG), 64L << 20);
            p.put(StreamsConfig.consumerPrefix(ConsumerConfig.MAX_POLL_RECORDS_CONFIG), 5000);
            p.put(StreamsConfig.BUFFERED_RECORDS_PER_PARTITION_CONFIG, 5000);
        }
        StreamsBuilder b = new StreamsBuilder();
        b.stream(System.getenv("SRC_TOPIC"), Consumed.with(Serdes.ByteArray(), json()))
            .filter((k, v) -> !"bad".equals(v.path("status").textValue()))
            .mapValues(v -> {
                v.put("amount_cents", (long) (v.get("amount").doubleValue() * 100));
                v.set("customer", v.remove("user"));
                return v;
            })
            .to(System.getenv("DST_TOPIC"), Produced.with(Serdes.ByteArray(), json()));
        KafkaStreams ks = new KafkaStreams(b.build(), p);
        Runtime.getRuntime().addShutdownHook(new Thread(ks::close));
        ks.start();
    }
}
